/** A watch emits each proven event once, whatever single authorities claim. */

import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";

import { ETHER, formatAccount, type AccountEvent } from "../../src/index.js";
import { watchAccount } from "../../src/wallet/watch.js";
import { encodeCertificate } from "../../src/wire.js";
import { problem, receivedJson } from "../support/node.js";
import { Scene } from "../support/scene.js";

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

type Sent = { event: string; data: object; id: string };

/** Each node's stream tells these events, and stays open. Tells from where it was asked to go on. */
function stream(number: number, events: readonly Sent[]): string[] {
  const cursors: string[] = [];
  scene.node(number).lie = ({ path, query }) => {
    if (!path.endsWith("/events")) return undefined;
    cursors.push(query.get("cursor") ?? "");
    return (response: ServerResponse) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(": hello\n\n");
      for (const { event, data, id } of events) {
        response.write(`event: ${event}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
      }
    };
  };
  return cursors;
}

async function read(count: number): Promise<AccountEvent[]> {
  const found: AccountEvent[] = [];
  for await (const event of watchAccount(scene.context, scene.bob.account, undefined, undefined)) {
    found.push(event);
    if (found.length === count) break;
  }
  return found;
}

test("a payment that all authorities report is emitted once; forgeries and a lone authority's deposits are not", async () => {
  const [first, second] = [await scene.pay(3n), await scene.pay(4n)];
  await Promise.all([first.rest, second.rest]);
  const events = [first, second].map(({ certificate }, i) => ({
    event: "received",
    data: receivedJson(certificate, i),
    id: `0.${i + 1}.0`,
  }));
  const deposit = (amount: string) => ({
    event: "deposited",
    data: { index: "1", recipient: formatAccount(scene.bob.account), asset: ETHER, amount },
    id: "0.2.1",
  });
  // One that invents a payment.
  const invented = JSON.parse(JSON.stringify(events[1]));
  invented.data.payment.sequence = "7";
  const asked = stream(0, [deposit("1000000"), invented, ...events]);
  for (const number of [1, 2, 3]) stream(number, [...events, ...(number === 3 ? [] : [deposit("9")])]);
  const found = await read(3);
  expect(found.map((event) => (event.type === "received" ? event.payment.amount : 0n)).sort()).toEqual([0n, 3n, 4n]);
  expect(found.find(({ type }) => type === "deposited")).toMatchObject({ amount: 9n, authorities: 2 });
  expect(asked[0]).toBe("0.2.0");
});

test("a broken stream is reopened at its last position", async () => {
  const { certificate, rest } = await scene.pay(3n);
  await rest;
  scene.node(3).lie = () => "hang";
  for (const number of [1, 2]) stream(number, [{ event: "received", data: receivedJson(certificate, 0), id: "0.1.0" }]);
  const cursors: string[] = [];
  scene.node(0).lie = ({ path, query }) => {
    if (!path.endsWith("/events")) return undefined;
    cursors.push(query.get("cursor") ?? "");
    return (response: ServerResponse) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      if (cursors.length === 1) response.write(": hello\n\n");
      else response.write(`event: received\nid: 0.9.0\ndata: ${JSON.stringify(receivedJson(certificate, 8))}\n\n`);
      response.end();
    };
  };
  expect(await read(1)).toMatchObject([{ type: "received", payment: { amount: 3n } }]);
  expect(cursors.slice(0, 2)).toEqual(["0.1.0", "0.1.0"]);
});

test("an order that a recovery ended is not taken for the one that took its number", async () => {
  const ended = await scene.certified(50n);
  scene.recover();
  const settled = await scene.certified(1n);
  for (const node of scene.nodes) node.confirm(settled);
  await scene.context.network.committees.refresh();
  for (const number of [1, 2]) stream(number, [{ event: "received", data: receivedJson(settled, 0), id: "0.1.0" }]);
  scene.node(3).lie = () => "hang";
  scene.node(0).lie = ({ path }) => {
    if (path.includes("/certificates/")) return { status: 200, body: encodeCertificate(ended) };
    if (!path.endsWith("/events")) return undefined;
    return (response: ServerResponse) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`event: received\nid: 0.1.0\ndata: ${JSON.stringify(receivedJson(ended, 0))}\n\n`);
      // It is the last to report the other one, so it is asked first for the certificate.
      const data = JSON.stringify(receivedJson(settled, 1));
      setTimeout(() => response.write(`event: received\nid: 0.2.0\ndata: ${data}\n\n`), 300);
    };
  };
  expect(await read(1)).toMatchObject([{ type: "received", payment: { amount: 1n } }]);
});

test("a watch ends when its signal aborts", async () => {
  const controller = new AbortController();
  const watch = watchAccount(scene.context, scene.bob.account, undefined, controller.signal);
  setTimeout(() => controller.abort(), 50);
  for await (const event of watch) expect(event).toBeUndefined();
});

test("the cursor points after the last consumed event, however far the streams were read", async () => {
  const [first, second] = [await scene.pay(3n), await scene.pay(4n)];
  await Promise.all([first.rest, second.rest]);
  const asked: string[] = [];
  let readToTheEnd = (): void => undefined;
  const isRead = new Promise<void>((resolve) => (readToTheEnd = resolve));
  for (const node of scene.nodes) {
    node.lie = ({ path, query }) => {
      if (!path.endsWith("/events")) return undefined;
      if (node === scene.node(3)) return "hang";
      const cursor = query.get("cursor") ?? "";
      if (node === scene.node(0)) asked.push(cursor);
      if (node === scene.node(0) && cursor === "0.2.0") readToTheEnd();
      return (response: ServerResponse) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        [first, second].forEach(({ certificate }, i) => {
          if (Number(cursor.split(".")[1]) > i) return;
          response.write(`event: received\nid: 0.${i + 1}.0\ndata: ${JSON.stringify(receivedJson(certificate, i))}\n\n`);
        });
        response.end();
      };
    };
  }
  const from = Object.fromEntries([0, 1, 2].map((number) => [scene.node(number).url, "0.0.0"]));
  const watch = watchAccount(scene.context, scene.bob.account, from, undefined);
  for await (const event of watch) {
    expect(event).toMatchObject({ type: "received", payment: { amount: 3n } });
    // Whoever takes its time with the first event: the second one is read meanwhile, and waits.
    await isRead;
    break;
  }
  const cursor = watch.cursor();
  expect(cursor[scene.node(0).url]).toBe("0.1.0");
  for await (const event of watchAccount(scene.context, scene.bob.account, cursor, undefined)) {
    expect(event).toMatchObject({ type: "received", payment: { amount: 4n } });
    break;
  }
  expect(asked.slice(0, 2)).toEqual(["0.0.0", "0.2.0"]);
});

test("an authority restored from an older copy is read from the beginning", async () => {
  const { certificate, rest } = await scene.pay(3n);
  await rest;
  const told = { event: "received", data: receivedJson(certificate, 0), id: "0.1.0" };
  for (const number of [1, 2, 3]) stream(number, number === 3 ? [] : [told]);
  const cursors: string[] = [];
  scene.node(0).lie = ({ path, query }) => {
    if (!path.endsWith("/events")) return undefined;
    cursors.push(query.get("cursor") ?? "");
    if (cursors.length === 1) return problem(409, "cursor-ahead");
    return (response: ServerResponse) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`event: received\nid: 0.1.0\ndata: ${JSON.stringify(told.data)}\n\n`);
    };
  };
  const from = { [scene.node(0).url]: "0.7.0" };
  for await (const event of watchAccount(scene.context, scene.bob.account, from, undefined)) {
    expect(event).toMatchObject({ type: "received", payment: { amount: 3n } });
    break;
  }
  expect(cursors).toEqual(["0.7.0", "0.0.0"]);
});

test("an old payment that a single authority repeats is not emitted as new", async () => {
  const [old, recent] = [await scene.pay(3n), await scene.pay(4n)];
  await Promise.all([old.rest, recent.rest]);
  const [again, now] = [old, recent].map(({ certificate }, i) => ({
    event: "received",
    data: receivedJson(certificate, i),
    id: `0.${i + 1}.0`,
  })) as [Sent, Sent];
  stream(0, [again, now]);
  // The others tell what is new when the one has told both.
  const told = new Promise<void>((resolve) => {
    const lie = scene.node(0).lie;
    scene.node(0).lie = (request) => {
      if (request.path.endsWith("/events")) setTimeout(resolve, 50);
      return lie(request);
    };
  });
  for (const number of [1, 2, 3]) {
    scene.node(number).lie = ({ path }) => {
      if (!path.endsWith("/events")) return undefined;
      return async (response: ServerResponse) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        await told;
        response.write(`event: received\nid: ${now.id}\ndata: ${JSON.stringify(now.data)}\n\n`);
      };
    };
  }
  expect(await read(1)).toMatchObject([{ type: "received", payment: { amount: 4n } }]);
});

test("a payment that a single authority has is sent to all, and emitted once they report it", async () => {
  const { certificate, rest } = await scene.pay(3n);
  await rest;
  // The others have not heard of it: they are as they were before.
  for (const number of [1, 2, 3]) {
    const [alice, bob] = [scene.alice, scene.bob].map(({ account }) => scene.node(number).account(account));
    Object.assign(alice as object, { next: 0n, balance: 100n, sent: [] });
    Object.assign(bob as object, { balance: 0n, received: [] });
  }
  const from = Object.fromEntries(scene.nodes.map(({ url }) => [url, "0.0.0"]));
  for (const node of scene.nodes) {
    node.lie = ({ path }) => {
      if (!path.endsWith("/events")) return undefined;
      return async (response: ServerResponse) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        while (node.account(scene.bob.account).received.length === 0) {
          if (response.destroyed) return;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        response.write(`event: received\nid: 0.1.0\ndata: ${JSON.stringify(receivedJson(certificate, 0))}\n\n`);
      };
    };
  }
  for await (const event of watchAccount(scene.context, scene.bob.account, from, undefined)) {
    expect(event).toMatchObject({ type: "received", payment: { amount: 3n } });
    break;
  }
  expect(scene.nodes.filter((node) => node.account(scene.bob.account).received.length > 0).length).toBeGreaterThan(1);
});

test("the cursor stays before events that too few have reported, so that the next watch can emit them", async () => {
  const [first, second] = [await scene.pay(3n), await scene.pay(4n)];
  await Promise.all([first.rest, second.rest]);
  const [early, late] = [first, second].map(({ certificate }, i) => ({
    event: "received",
    data: receivedJson(certificate, i),
    id: `0.${i + 1}.0`,
  })) as [Sent, Sent];
  const from = Object.fromEntries(scene.nodes.map(({ url }) => [url, "0.0.0"]));
  stream(0, [early, late]);
  for (const number of [1, 2]) stream(number, [{ ...late, id: "0.1.0" }]);
  stream(3, []);
  const watch = watchAccount(scene.context, scene.bob.account, from, undefined);
  for await (const event of watch) {
    expect(event).toMatchObject({ type: "received", payment: { amount: 4n } });
    break;
  }
  const cursor = watch.cursor();
  expect(cursor[scene.node(0).url]).toBe("0.0.0");
  stream(1, []);
  for (const number of [2, 3]) stream(number, [early]);
  for await (const event of watchAccount(scene.context, scene.bob.account, cursor, undefined)) {
    expect(event).toMatchObject({ type: "received", payment: { amount: 3n } });
    break;
  }
});
