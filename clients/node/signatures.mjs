// What is delivered is verified as receivers do it: by `standardwebhooks` and the SDK's own class.
//
// Neither knows ed25519; those signatures are verified with Node's own cryptography.
// Never: sign anything.

import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import * as standardwebhooks from "standardwebhooks";
import * as svix from "svix";
import { same } from "./sdk.mjs";

export const FAMILIES = ["webhook", "svix"];
const PARTS = ["id", "timestamp", "signature"];

function takes(webhook, body, headers) {
  try {
    webhook.verify(body, headers);
    return true;
  } catch (fault) {
    if (fault instanceof svix.WebhookVerificationError) return false;
    throw fault;
  }
}

/** Whether both libraries take a delivery, by the headers of one family. */
export function accepted(hit, secret, family) {
  const named = (as) =>
    Object.fromEntries(PARTS.map((part) => [`${as}-${part}`, hit.headers[`${family}-${part}`]]));
  const one = takes(new svix.Webhook(secret), hit.body, named(family));
  const other = takes(new standardwebhooks.Webhook(secret), hit.body, named("webhook"));
  same(one, other, "the two libraries agree");
  return one;
}

async function deliver({ svix, receiver }, count) {
  const payload = { count, text: "é\n" };
  await svix.message.create("signed", { eventType: "invoice.paid", payload });
  return (await receiver.wait("/signed", count)).at(-1);
}

async function bySecrets(bench) {
  const api = bench.svix.endpoint;
  await bench.svix.application.create({ name: "Signed", uid: "signed" });
  await api.create("signed", { url: bench.receiver.url("/signed"), uid: "e" });
  const secret = async () => (await api.getSecret("signed", "e")).key;
  const old = await secret();
  let hit = await deliver(bench, 1);
  for (const family of FAMILIES) assert(accepted(hit, old, family), family);
  const changed = { ...hit, body: Buffer.concat([hit.body, Buffer.from(" ")]) };
  assert(!accepted(changed, old, "svix"), "a changed body");

  await api.rotateSecret("signed", "e", {});
  const new_ = await secret();
  hit = await deliver(bench, 2);
  same(hit.headers["webhook-signature"].split(" ").length, 2);
  for (const family of FAMILIES) {
    assert(accepted(hit, old, family) && accepted(hit, new_, family), family);
  }
  assert(!accepted(hit, `whsec_${"QUJD".repeat(8)}`, "svix"), "a stranger's secret");
  await api.rotateSecret("signed", "e", { gracePeriodSeconds: 0 });
  hit = await deliver(bench, 3);
  assert(accepted(hit, await secret(), "svix") && !accepted(hit, new_, "svix"), "no grace");
}

/** The signatures of a version, of the headers of a family. */
function signatures(hit, family, version) {
  const all = hit.headers[`${family}-signature`].split(" ").map((part) => part.split(","));
  return all.filter(([found]) => found === version).map(([, text]) => Buffer.from(text, "base64"));
}

async function byKeyPair(bench) {
  const api = bench.svix.endpoint;
  const hmac = (await api.getSecret("signed", "e")).key;
  const { d, x } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  const [half, open] = [d, x].map((part) => Buffer.from(part, "base64url"));
  const pair = Buffer.concat([half, open]).toString("base64");
  await api.rotateSecret("signed", "e", { key: `whsk_${pair}` });
  const shown = (await api.getSecret("signed", "e")).key;
  same(shown, `whpk_${open.toString("base64")}`);
  const hit = await deliver(bench, 4);
  assert(accepted(hit, hmac, "svix"), "beside v1a, which these libraries pass over");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  for (const family of FAMILIES) {
    const head = `${hit.headers[`${family}-id`]}.${hit.headers[`${family}-timestamp`]}.`;
    const signed = Buffer.concat([Buffer.from(head), hit.body]);
    const found = signatures(hit, family, "v1a");
    same(found.map((signature) => verify(null, signed, key, signature)), [true], family);
  }
}

export const ALL = [bySecrets, byKeyPair];
