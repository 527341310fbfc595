// Health, event types, applications and endpoints, by every operation that the SDK has for them.
//
// Never: send anything.

import assert from "node:assert/strict";
import { refused, same } from "./sdk.mjs";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

async function health({ svix }) {
  await svix.health.get();
}

async function eventTypes({ svix }) {
  const types = svix.eventType;
  const schemas = { 1: { type: "object", examples: [{ of: "an invoice" }] } };
  const made = await types.create({ name: "invoice.paid", description: "Paid", schemas });
  same([made.name, made.archived, made.deprecated], ["invoice.paid", false, false]);
  const again = () => types.create({ name: "invoice.paid", description: "" });
  same((await refused(409, again)).code, "event_type_exists");
  await types.create({ name: "invoice.late", description: "Late" });
  same((await types.get("invoice.paid")).schemas, schemas);
  const listed = await types.list();
  same(listed.data.map((found) => found.name), ["invoice.late", "invoice.paid"]);
  same(listed.data.map((found) => found.schemas), [null, null]);
  const page = await types.list({ withContent: true, limit: 1, iterator: "invoice.late" });
  same([page.data[0].schemas, page.done], [schemas, true]);

  same((await types.patch("invoice.paid", { description: "Now" })).description, "Now");
  const put = await types.upsert("invoice.paid", { description: "Put", deprecated: true, schemas });
  same([put.description, put.deprecated], ["Put", true]);
  same((await types.upsert("invoice.new", { description: "By PUT" })).name, "invoice.new");
  await types.delete("invoice.new");
  same((await types.list()).data.length, 2);
  const all = await types.list({ includeArchived: true });
  same(all.data.filter((found) => found.archived).map((found) => found.name), ["invoice.new"]);
  const back = await types.create({ name: "invoice.new", description: "Back" });
  same(back.archived, false);
  await types.delete("invoice.new", { expunge: true });
  same((await refused(404, () => types.get("invoice.new"))).code, "not_found");
}

async function importOpenapi({ svix }) {
  const schema = { type: "object", properties: { id: { type: "string" } } };
  const requestBody = { content: { "application/json": { schema } } };
  const post = { operationId: "user.left", description: "Gone", requestBody };
  const info = { title: "Webhooks", version: "1" };
  const spec = { openapi: "3.1.0", info, webhooks: { "user.left": { post } } };
  const dry = await svix.eventType.importOpenapi({ spec, dryRun: true });
  same([dry.data.modified, dry.data.toModify[0].name], [[], "user.left"]);
  await refused(404, () => svix.eventType.get("user.left"));
  const specRaw = JSON.stringify(spec);
  same((await svix.eventType.importOpenapi({ specRaw })).data.modified, ["user.left"]);
  same((await svix.eventType.get("user.left")).schemas[1].type, "object");
}

async function applications({ svix }) {
  const apps = svix.application;
  const made = await apps.create({ name: "One", uid: "one", metadata: { plan: "gold" } });
  assert.match(made.id, /^app_/);
  same([made.uid, made.metadata], ["one", { plan: "gold" }]);
  same(await apps.get("one"), made);
  same(await apps.get(made.id), made);
  const again = await refused(409, () => apps.create({ name: "Two", uid: "one" }));
  same(again.code, "conflict");
  same(await apps.getOrCreate({ name: "Other", uid: "one" }), made);
  same((await apps.getOrCreate({ name: "Two", uid: "two" })).name, "Two");

  const put = await apps.upsert("one", { name: "Put", uid: "one", throttleRate: 9 });
  same([put.id, put.name, put.throttleRate, put.metadata], [made.id, "Put", 9, {}]);
  const patched = await apps.patch("one", { throttleRate: null, metadata: { a: "b" } });
  same([patched.name, patched.throttleRate, patched.metadata], ["Put", null, { a: "b" }]);
  const first = await apps.list({ limit: 1, order: "ascending" });
  same([first.data.map((app) => app.uid), first.done], [["one"], false]);
  const rest = await apps.list({ iterator: first.iterator });
  same([rest.data.map((app) => app.uid), rest.done], [["two"], true]);
  await apps.delete("two");
  same((await refused(404, () => apps.get("two"))).code, "not_found");
  const error = await refused(422, () => apps.create({ name: "", uid: "two" }));
  same(error.detail[0].loc, ["body", "name"]);
}

async function endpoints({ svix }) {
  const api = svix.endpoint;
  const wanted = {
    url: "HTTPS://Example.com",
    uid: "all",
    description: "All fields",
    throttleRate: 50,
    eventTypes: ["invoice.paid"],
    channels: ["blue"],
    metadata: { a: "b" },
    secret: SECRET,
    headers: { "X-Origin": "create" },
  };
  const made = await api.create("one", wanted);
  assert.match(made.id, /^ep_/);
  const { secret, headers, ...shown } = wanted;
  for (const [name, value] of Object.entries({ ...shown, url: "https://example.com/" })) {
    same(made[name], value, name);
  }
  same((await api.getHeaders("one", "all")).headers, headers);
  same((await api.getSecret("one", "all")).key, secret);
  same(await api.get("one", "all"), made);
  same((await refused(409, () => api.create("one", wanted))).code, "conflict");
  await refused(422, () => api.create("one", { url: "ftp://example.com" }));
  await refused(422, () => api.create("one", { url: wanted.url, eventTypes: ["no.such"] }));

  const put = await api.upsert("one", "all", { url: "https://example.com/put", uid: "all" });
  same([put.id, put.url, put.description], [made.id, "https://example.com/put", ""]);
  same([put.channels, put.eventTypes, put.throttleRate], [null, null, null]);
  const new_ = await api.upsert("one", "unknown", { url: "https://example.com/2", uid: "second" });
  assert.notEqual(new_.id, made.id);
  const patched = await api.patch("one", "all", { channels: ["red"], disabled: true });
  same([patched.channels, patched.disabled, patched.url], [["red"], true, put.url]);
  same((await api.patch("one", "all", { channels: null })).channels, null);

  const newest = await api.list("one", { limit: 1 });
  same([newest.data.map((found) => found.uid), newest.done], [["second"], false]);
  const rest = await api.list("one", { limit: 1, iterator: newest.iterator });
  same([rest.data.map((found) => found.uid), rest.done], [["all"], true]);
  const back = await api.list("one", { limit: 1, iterator: rest.prevIterator });
  same(back.data.map((found) => found.uid), ["second"]);
  await api.delete("one", "second");
  same((await refused(404, () => api.get("one", "second"))).code, "not_found");
}

async function endpointHeaders({ svix }) {
  const api = svix.endpoint;
  await api.setHeaders("one", "all", { headers: { "X-A": "1", "X-B": "2" } });
  same((await api.getHeaders("one", "all")).headers, { "X-A": "1", "X-B": "2" });
  const patch = { headers: { Authorization: "Bearer s" }, deleteHeaders: ["X-A"] };
  await api.patchHeaders("one", "all", patch);
  const found = await api.getHeaders("one", "all");
  same([found.headers, found.sensitive], [{ "X-B": "2" }, ["Authorization"]]);
  const headers = { "Webhook-Signature": "v1,own" };
  await refused(422, () => api.setHeaders("one", "all", { headers }));
}

async function secrets({ svix }) {
  const api = svix.endpoint;
  const key = `whsec_${"QUJD".repeat(8)}`;
  await api.rotateSecret("one", "all", { key });
  same((await api.getSecret("one", "all")).key, key);
  await api.rotateSecret("one", "all", { gracePeriodSeconds: 0 });
  assert.notEqual((await api.getSecret("one", "all")).key, key);
  await refused(422, () => api.rotateSecret("one", "all", { key: "whsec_short" }));
  await svix.application.delete("one");
  await refused(404, () => api.get("one", "all"));
}

export const ALL = [
  health,
  eventTypes,
  importOpenapi,
  applications,
  endpoints,
  endpointHeaders,
  secrets,
];
