// Drives a Peyk with the published SDK for Node: every operation, and what is delivered.
//
// Usage: `SVIX_SERVER_URL=… SVIX_TOKEN=… node kitchen_sink.mjs`. The server needs a scratch
// directory, leave to reach loopback, two sends in all and a quick retry.
// Never: skip an operation; what is not called by name has to be answered 404.

import assert from "node:assert/strict";
import * as deliveries from "./deliveries.mjs";
import * as directory from "./directory.mjs";
import * as operational from "./operational.mjs";
import { Receiver } from "./receiver.mjs";
import { client, methods, refused, same, watched } from "./sdk.mjs";
import * as signatures from "./signatures.mjs";

const NOTHING = "There is nothing under this path";
// Those of unserved operations that lie under a path that is served by another method.
const WRONG_METHOD = new Set(["message.bulkExpungeContent"]);

async function tokens({ svix, url, withToken }) {
  const auth = svix.authentication;
  await svix.application.getOrCreate({ name: "Owner", uid: "owner" });
  const opened = await auth.appPortalAccess("owner", { sessionId: "one" });
  assert(opened.url.startsWith(url) && opened.url.endsWith(`#key=${opened.token}`));
  const owner = withToken(opened.token);
  same((await owner.application.get("owner")).name, "Owner");
  await refused(403, () => owner.application.list());
  await refused(404, () => owner.application.get("shop"));
  const mine = await owner.endpoint.create("owner", { url: "https://example.com/" });
  same((await owner.endpoint.list("owner")).data.map((found) => found.id), [mine.id]);

  const reader = await auth.appPortalAccess("owner", { readOnly: true });
  const reads = withToken(reader.token).endpoint;
  same((await reads.get("owner", mine.id)).id, mine.id);
  await refused(403, () => reads.delete("owner", mine.id));
  await owner.authentication.logout();
  const ended = await refused(401, () => owner.application.get("owner"));
  same(ended.code, "authentication_failed");
  same((await reads.get("owner", mine.id)).id, mine.id);
  await auth.expireAll("owner", {});
  await refused(401, () => reads.get("owner", mine.id));
  same((await refused(400, () => auth.logout())).code, "bad_token");
  await auth.appPortalAccess("linked", { application: { name: "By a link", uid: "linked" } });
  same((await svix.application.get("linked")).name, "By a link");
  await refused(401, () => withToken("no.token.at-all").application.list());
}

/** What has not been called by now is 404, in a form that the SDK understands. */
async function everythingElseIsNotThere({ plain, called }) {
  const rest = methods(plain).filter(([name]) => !called.has(name));
  // For an id it is a text, for a body an object in which every field is left out.
  const anything = Object.assign(new String("x"), { events: [] });
  for (const [name, method] of rest) {
    const call = () => method(...Array(method.length + 1).fill(anything));
    const wrong = WRONG_METHOD.has(name);
    const error = await refused(wrong ? 405 : 404, call).catch((fault) => {
      throw new Error(`${name}: ${fault.message}`);
    });
    // That a thing is unknown would say something else: the operation is there.
    same(error.detail, wrong ? "This path does not take this method" : NOTHING, name);
  }
  console.log(`  ${called.size} operations called, ${rest.length} others are not served`);
}

const CHECKS = [
  ...directory.ALL,
  ...deliveries.ALL,
  ...signatures.ALL,
  ...operational.ALL,
  tokens,
  everythingElseIsNotThere,
];

async function main() {
  const { SVIX_SERVER_URL: url, SVIX_TOKEN: token } = process.env;
  const [called, plain] = [new Set(), client(url, token)];
  const withToken = (other) => watched(client(url, other), called);
  const receiver = await Receiver.start();
  const bench = { url, token, called, plain, receiver, withToken, svix: withToken(token) };
  for (const check of CHECKS) {
    const began = performance.now();
    try {
      await check(bench);
    } catch (fault) {
      console.log(fault);
      console.log(`  FAILED ${check.name}`);
      return 1;
    }
    console.log(`  ${check.name} ${((performance.now() - began) / 1_000).toFixed(2)} s`);
  }
  return 0;
}

process.exit(await main());
