// A receiver of webhooks on loopback that notes what it gets, and a forwarder that loses answers.
//
// Never: verify a signature; who looks at a hit does.

import { createServer } from "node:http";

// Nothing that works takes longer, on a machine that is busy with other things too.
const PATIENCE_MS = 45_000;

/** Asks until there is an answer. */
export async function until(what, ask) {
  const end = performance.now() + PATIENCE_MS;
  while (performance.now() < end) {
    const found = await ask();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`waited in vain: ${what}`);
}

async function serve(answer) {
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    const { status, text } = await answer({ path: request.url, headers: request.headers, body });
    response.writeHead(status, { "content-type": "application/json" }).end(text);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return `http://127.0.0.1:${server.address().port}`;
}

/** Answers 200 on every path, and 500 on those that are down. */
export class Receiver {
  static async start() {
    const receiver = new Receiver();
    receiver.down = new Set();
    receiver.hits = [];
    receiver.origin = await serve((hit) => {
      receiver.hits.push(hit);
      return { status: receiver.down.has(hit.path) ? 500 : 200, text: "noted" };
    });
    return receiver;
  }

  url(path) {
    return this.origin + path;
  }

  /** What came to a path, oldest first. */
  to(path) {
    return this.hits.filter((hit) => hit.path === path);
  }

  /** Waits until so many came to a path; more are a fault. */
  async wait(path, count) {
    await until(`${count} to ${path}`, () => this.to(path).length >= count);
    const hits = this.to(path);
    if (hits.length !== count) throw new Error(`${path}: ${hits.length} instead of ${count}`);
    return hits;
  }
}

/** Forwards POSTs, and answers 503 to the first try of each though the server carried it out. */
export async function losesAnswers(serverUrl) {
  const posts = [];
  const lost = { status: 503, text: '{"code": "lost", "detail": "the answer was lost"}' };
  const origin = await serve(async ({ path, headers, body }) => {
    posts.push(headers);
    const { authorization, "idempotency-key": key } = headers;
    const response = await fetch(serverUrl + path, {
      method: "POST",
      headers: { authorization, "idempotency-key": key },
      body,
    });
    const answer = { status: response.status, text: await response.text() };
    return "svix-retry-count" in headers ? answer : lost;
  });
  return { origin, posts };
}
