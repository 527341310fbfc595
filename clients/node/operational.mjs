// Who is told what happens in the organisation, by every operation of the SDK, and that they are.
//
// Never: look at events that other checks make; the filter lets only deleted endpoints through.

import assert from "node:assert/strict";
import { refused, same } from "./sdk.mjs";
import { accepted, FAMILIES } from "./signatures.mjs";

/** An endpoint is made and deleted, of which there is an event. */
async function deletes({ svix }) {
  const { id } = await svix.endpoint.create("watched", { url: "https://example.com/" });
  await svix.endpoint.delete("watched", id);
  return id;
}

async function operationalWebhooks(bench) {
  const { svix, receiver } = bench;
  const api = svix.operationalWebhook.endpoint;
  await svix.application.create({ name: "Watched", uid: "watched" });
  const none = await api.list();
  same([none.data, none.done], [[], true]);
  const wanted = { url: receiver.url("/told"), uid: "told", eventTypes: ["endpoint.deleted"] };
  const made = await api.create(wanted);
  assert.match(made.id, /^ep_/);
  same([made.uid, made.url, made.eventTypes], [wanted.uid, wanted.url, wanted.eventTypes]);
  same(await api.get("told"), made);
  same((await api.list()).data, [made]);
  await refused(422, () => api.create({ ...wanted, eventTypes: ["no.such.type"] }));

  await api.setHeaders("told", { headers: { "X-Told": "1" } });
  same((await api.getHeaders("told")).headers, { "X-Told": "1" });
  const gone = await deletes(bench);
  const [first] = await receiver.wait("/told", 1);
  const { type, data } = JSON.parse(first.body);
  same(
    [type, data.endpointId, data.appUid, first.headers["x-told"]],
    ["endpoint.deleted", gone, "watched", "1"],
  );
  const old = (await api.getSecret("told")).key;
  assert(FAMILIES.every((family) => accepted(first, old, family)));
  await api.rotateSecret("told", {});
  const { key } = await api.getSecret("told");
  assert.notEqual(key, old);
  same((await api.upsert("told", wanted)).id, made.id);
  await deletes(bench);
  const second = (await receiver.wait("/told", 2))[1];
  assert(FAMILIES.every((family) => accepted(second, key, family)));
  await api.delete("told");
  same((await refused(404, () => api.get("told"))).code, "not_found");
}

export const ALL = [operationalWebhooks];
