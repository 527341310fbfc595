// Messages, what was tried for them, and sending again, against a receiver on loopback.
//
// Never: look at a signature, which `signatures` does.

import assert from "node:assert/strict";
import { messageInRaw } from "svix";
import { losesAnswers, until } from "./receiver.mjs";
import { client, refused, same } from "./sdk.mjs";

const SUCCESS = 0;
const FAIL = 2;
const SCHEDULED = 0;
const MANUAL = 1;
const paid = { eventType: "invoice.paid" };
const id = (hit) => hit.headers["webhook-id"];
const ago = (ms) => new Date(Date.now() - ms);

/** Waits until a message has so many attempts, and gives them, newest first. */
function attempts({ svix }, app, message, count) {
  return until(`${count} attempts of ${message}`, async () => {
    const { data } = await svix.messageAttempt.listByMsg(app, message);
    return data.length === count && data;
  });
}

async function messages(bench) {
  const { svix, receiver } = bench;
  await svix.application.create({ name: "Shop", uid: "shop" });
  const headers = { "X-Custom-Case": "kept" };
  await svix.endpoint.create("shop", { url: receiver.url("/ok"), uid: "ok", headers });
  const payload = { n: 1, ä: [1.5, null] };
  const body = { ...paid, eventId: "first", payload, tags: ["vip"], payloadRetentionPeriod: 7 };
  const made = await svix.message.create("shop", body, { withContent: true });
  assert.match(made.id, /^msg_/);
  same([made.eventId, made.eventType, made.tags], ["first", "invoice.paid", ["vip"]]);
  same(made.payload, payload);
  const [hit] = await receiver.wait("/ok", 1);
  same(JSON.parse(hit.body), payload);
  same(
    [id(hit), hit.headers["x-custom-case"], hit.headers["content-type"]],
    [made.id, "kept", "application/json"],
  );
  same((await refused(409, () => svix.message.create("shop", body))).code, "conflict");
  same((await svix.message.get("shop", "first")).payload, {});
  const whole = await svix.message.get("shop", made.id, { withContent: true });
  same(whole.payload, payload);
  bench.first = made;
}

async function messagesOfOtherKinds({ svix, receiver, first }) {
  const raw = messageInRaw("invoice.paid", '<paid n="1"/>', "application/xml");
  const made = await svix.message.create("shop", raw, { withContent: true });
  same(made.payload, { rawPayload: '<paid n="1"/>' });
  const hit = (await receiver.wait("/ok", 2))[1];
  same(
    [hit.body.toString(), hit.headers["content-type"]],
    ['<paid n="1"/>', "application/xml"],
  );
  const deliverAt = ago(-1_500);
  const later = { eventType: "invoice.late", payload: {}, deliverAt };
  same((await svix.message.create("shop", later)).deliverAt, deliverAt);
  await receiver.wait("/ok", 3);
  assert(new Date() >= deliverAt, "not before its time");
  await svix.endpoint.create("shop", { url: receiver.url("/red"), uid: "red", channels: ["red"] });
  const red = { ...paid, payload: { to: "red" }, channels: ["red"] };
  same((await svix.message.create("shop", red)).channels, ["red"]);
  same(JSON.parse((await receiver.wait("/red", 1))[0].body), { to: "red" });
  await receiver.wait("/ok", 4);

  const listed = await svix.message.list("shop", { limit: 3 });
  same([listed.data.length, listed.done], [3, false]);
  const older = await svix.message.list("shop", { iterator: listed.iterator });
  same([older.data.map((found) => found.id), older.done], [[first.id], true]);
  for (const [options, count] of [
    [{ channel: "red" }, 1],
    [{ tag: "vip" }, 1],
    [{ eventTypes: ["invoice.late", "no.such.type"] }, 1],
    [{ before: first.timestamp }, 0],
    [{ after: new Date(first.timestamp.getTime() - 1_000), withContent: true }, 4],
  ]) {
    same((await svix.message.list("shop", options)).data.length, count, JSON.stringify(options));
  }
  const application = { name: "By a message", uid: "made" };
  await svix.message.create("made", { ...paid, payload: {}, application });
  same((await svix.application.get("made")).name, "By a message");
  await refused(404, () => svix.message.create("nobody", { ...paid, payload: {} }));
}

async function precheck({ svix }) {
  const ask = svix.message.precheck;
  same([await ask("shop", paid), await ask("made", paid)], [{ active: true }, { active: false }]);
}

/** A POST whose answer is lost is sent again by the SDK; one message comes of it. */
async function repeatedPosts({ svix, receiver, url, token }) {
  const options = { idempotencyKey: "one-key" };
  const body = { ...paid, payload: { keyed: true }, channels: ["red"] };
  const made = await svix.message.create("shop", body, options);
  same((await svix.message.create("shop", body, options)).id, made.id);
  const other = { ...paid, payload: { keyed: false } };
  await refused(422, () => svix.message.create("shop", other, options));

  const lossy = await losesAnswers(url);
  const through = client(lossy.origin, token);
  const lost = { ...paid, payload: { lost: true }, channels: ["red"] };
  const twice = await through.message.create("shop", lost);
  same(lossy.posts.map((headers) => headers["svix-retry-count"]), [undefined, "1"]);
  assert.equal(new Set(lossy.posts.map((headers) => headers["idempotency-key"])).size, 1);
  const ids = (await receiver.wait("/red", 3)).map(id);
  assert(ids.includes(made.id) && ids.includes(twice.id));
  same((await svix.message.list("shop", { channel: "red" })).data.length, 3);
  const app = await through.application.create({ name: "No uid" });
  const names = (await svix.application.list()).data.map((found) => found.name);
  same(names.filter((name) => name === "No uid").length, 1);
  await svix.application.delete(app.id);
}

async function attemptsOfAMessage(bench) {
  const { svix, receiver, first } = bench;
  const api = svix.messageAttempt;
  const [only] = await attempts(bench, "shop", "first", 1);
  same([only.status, only.statusText, only.responseStatusCode], [SUCCESS, "success", 200]);
  same([only.msgId, only.triggerType, only.url], [first.id, SCHEDULED, receiver.url("/ok")]);
  const content = { withContent: true };
  same((await api.listByMsg("shop", "first", content)).data[0].response, "noted");
  same((await api.get("shop", "first", only.id)).endpointId, only.endpointId);
  for (const [options, count] of [
    [{}, 3],
    [{ limit: 2 }, 2],
    [{ status: FAIL }, 0],
    [{ statusCodeClass: 200 }, 3],
    [{ eventTypes: ["invoice.paid"] }, 3],
    [{ channel: "blue" }, 0],
  ]) {
    const { data } = await api.listByEndpoint("shop", "red", options);
    same(data.length, count, JSON.stringify(options));
  }
  const toRed = (await api.listAttemptedMessages("shop", "red")).data;
  same(toRed.map((found) => found.status), [SUCCESS, SUCCESS, SUCCESS]);
  same((await api.listAttemptedMessages("shop", "red", { status: FAIL })).data, []);
  const places = (await api.listAttemptedDestinations("shop", "first")).data;
  same(places.map((found) => [found.uid, found.status]), [["ok", SUCCESS]]);

  await api.resend("shop", "first", "ok");
  same((await attempts(bench, "shop", "first", 2))[0].triggerType, MANUAL);
  same(id(receiver.to("/ok").at(-1)), first.id);
  await api.expungeContent("shop", "first", only.id);
  same((await api.listByMsg("shop", "first", content)).data[1].response, "EXPUNGED");
}

async function exampleAndStats({ svix, receiver }) {
  const api = svix.endpoint;
  const sent = await api.sendExample("shop", "red", paid);
  same(sent.eventType, "invoice.paid");
  const ping = await api.sendExample("shop", "red", { eventType: "svix.ping" });
  const hits = Object.fromEntries((await receiver.wait("/red", 5)).map((hit) => [id(hit), hit]));
  same(JSON.parse(hits[sent.id].body), { of: "an invoice" });
  same(JSON.parse(hits[ping.id].body), { success: true });
  const none = () => api.sendExample("shop", "red", { eventType: "invoice.late" });
  same((await refused(400, none)).code, "invalid_scheme");
  const stats = await until("five", async () => {
    const found = await api.getStats("shop", "red");
    return found.success === 5 && found;
  });
  same([stats.fail, stats.pending, stats.sending, stats.canceled], [0, 0, 0, 0]);
  const tooEarly = { since: ago(40 * 86_400_000) };
  const early = await refused(400, () => api.getStats("shop", "red", tooEarly));
  same(early.code, "invalid_range");
}

/** Waits until a background task is over, and gives how many it sent or purged. */
async function finished({ svix }, task, kind) {
  same(task.task, kind);
  const done = await until(`the end of ${kind}`, async () => {
    const found = await svix.backgroundTask.get(task.id);
    return found.status !== "running" && found;
  });
  same(done.status, "finished");
  return done.data;
}

async function sendingAgain(bench) {
  const { svix, receiver } = bench;
  const [api, since] = [svix.endpoint, ago(1_000)];
  await svix.application.create({ name: "Again", uid: "again" });
  receiver.down.add("/down");
  await api.create("again", { url: receiver.url("/down"), uid: "down" });
  const made = await svix.message.create("again", { ...paid, payload: { n: 1 } });
  const failed = await attempts(bench, "again", made.id, 2);
  same(failed.map((found) => found.responseStatusCode), [500, 500]);
  const options = { status: FAIL };
  await until("a dead letter", async () => {
    const { data } = await svix.messageAttempt.listAttemptedMessages("again", "down", options);
    return data.length === 1;
  });
  receiver.down.clear();
  const recovery = await api.recover("again", "down", { since });
  same((await finished(bench, recovery, "endpoint.recover")).messagesSent, 1);
  same((await attempts(bench, "again", made.id, 3))[0].status, SUCCESS);
  const old = { since: ago(20 * 86_400_000) };
  await refused(422, () => api.recover("again", "down", old));

  await api.create("again", { url: receiver.url("/late"), uid: "late" });
  const missing = await api.replayMissing("again", "late", { since });
  same((await finished(bench, missing, "endpoint.replay")).messagesSent, 1);
  same((await receiver.wait("/late", 1)).map(id), [made.id]);
  await until("its record", async () => {
    return (await svix.messageAttempt.listByEndpoint("again", "late")).data.length === 1;
  });
  const wide = { since, eventTypes: ["invoice.paid"], status: SUCCESS };
  const replay = await api.bulkReplay("again", "late", wide);
  same((await finished(bench, replay, "endpoint.bulk-replay")).messagesSent, 1);
  same((await receiver.wait("/late", 2)).map(id), [made.id, made.id]);
  await api.patch("again", "late", { disabled: true });
  const off = await refused(400, () => api.replayMissing("again", "late", { since }));
  same(off.code, "endpoint_disabled");
}

async function contentsAreDeleted(bench) {
  const { svix } = bench;
  await svix.message.expungeContent("shop", "first");
  const gone = await svix.message.get("shop", "first", { withContent: true });
  same(gone.payload, { expired: true });
  await refused(400, () => svix.messageAttempt.resend("shop", "first", "ok"));
  const task = await svix.message.expungeAllContents("shop");
  assert((await finished(bench, task, "application.purge_content")).messagesPurged >= 5);
  const rest = (await svix.message.list("shop", { withContent: true })).data;
  assert(rest.length > 0 && rest.every((found) => found.payload.expired));
  const tasks = await svix.backgroundTask.list({ limit: 2 });
  same([tasks.data.length, tasks.data[0].id, tasks.done], [2, task.id, false]);
  same((await svix.backgroundTask.list({ status: "running" })).data, []);
}

async function statistics({ svix, receiver }) {
  await svix.endpoint.create("made", { url: receiver.url("/"), eventTypes: ["invoice.paid"] });
  const found = await svix.statistics.aggregateEventTypes();
  same([found.status, found.task], ["finished", "event-type.aggregate"]);
  same((await svix.backgroundTask.get(found.id)).task, found.task);
  const until = new Date();
  const since = new Date(until.getTime() - 86_400_000);
  const begun = await svix.statistics.aggregateAppStats({ since, until, appIds: ["made", "none"] });
  same([begun.task, begun.unresolvedAppIds], ["application.stats", ["none"]]);
  let counted = begun;
  while (counted.status === "running") counted = await svix.backgroundTask.get(begun.id);
  same([counted.status, counted.data.appStats.length], ["finished", 1]);
}

export const ALL = [
  messages,
  messagesOfOtherKinds,
  precheck,
  repeatedPosts,
  attemptsOfAMessage,
  exampleAndStats,
  sendingAgain,
  contentsAreDeleted,
  statistics,
];
