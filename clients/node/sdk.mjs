// The SDK as this program uses it: which calls were made, which there are, how they are refused.
//
// Never: hide what the SDK sends or gives back.

import assert from "node:assert/strict";
import { ApiException, Svix } from "svix";

export const same = assert.deepEqual;

/** A client that does not wait long before it tries again. */
export function client(serverUrl, token) {
  return new Svix(token, { serverUrl, retryScheduleInMs: [10, 20] });
}

/** A client, or a resource of it, that notes the names of the methods that are asked for. */
export function watched(inner, called, prefix = "") {
  return new Proxy(inner, {
    get(target, name) {
      const value = target[name];
      if (typeof value !== "function") return watched(value, called, `${prefix}${name}.`);
      called.add(prefix + name);
      return value.bind(target);
    },
  });
}

/** All operations of a client: their names and what to call. */
export function methods(resource, prefix = "") {
  const members = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(resource));
  return Object.entries(members).flatMap(([name, member]) => {
    if (name === "constructor") return [];
    if (member.get) return methods(resource[name], `${prefix}${name}.`);
    return [[prefix + name, member.value.bind(resource)]];
  });
}

/** The body of the error that a call is answered with, of this status. */
export async function refused(status, call) {
  const answer = await call().catch((fault) => fault);
  assert(answer instanceof ApiException, `not refused with ${status}: ${String(answer)}`);
  assert.equal(answer.code, status, JSON.stringify(answer.body));
  return answer.body;
}
