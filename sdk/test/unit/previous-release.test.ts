/**
 * The previous release's HTTP conversations (`vectors/release`, docs/CONTRIBUTING.md), replayed against this SDK: it sends
 * the recorded requests, and reads the recorded answers of an authority that is not upgraded yet.
 */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { expect, test } from "vitest";

import { AuthorityClient } from "../../src/authority.js";
import { accountOf, type Certificate, type Hex } from "../../src/index.js";
import { decodeOrder, encodeCertificate, parseCertificate, type OrderName } from "../../src/wire.js";

/** The authority is listed with it, so it is not asked for. */
const NAME = `0x${"77".repeat(32)}` as const;

interface Step {
  readonly method: string;
  readonly path: string;
  readonly body: Record<string, unknown> | null;
  readonly status: number;
  readonly answer: Record<string, unknown>;
}

const RELEASE = new URL("../../../vectors/release/http.json", import.meta.url);
const steps: readonly Step[] = JSON.parse(readFileSync(RELEASE, "utf8"));
/** A path that does not exist, and a body that is no order. */
const sentByNoClient = ({ path, answer }: Step): boolean => path === "/v1/nothing" || answer["code"] === "malformed";

/** The same request as this SDK sends it. */
function ask(client: AuthorityClient, { path, body }: Step): Promise<unknown> {
  const [place = "", query] = path.split("?");
  const [, , kind, name = "", list, number = "0"] = place.split("/");
  const shard = Number(new URLSearchParams(query).get("shard"));
  switch (kind === "accounts" ? (list ?? "account") : place) {
    case "/v1/orders":
      return client.order(decodeOrder(body, "the order"));
    case "/v1/certificates":
      return client.confirm(parseCertificate(JSON.stringify(body)));
    case "/v1/redemptions/votes": {
      const names = body?.["redemptions"] as { sender: string; sequence: string }[];
      return client.voteForRedemptions(names.map(({ sender, sequence }): OrderName => ({ sender: accountOf(sender), sequence: BigInt(sequence) })));
    }
    case "/v1/redemptions":
      return client.redemptions(shard, 0n);
    case "/v1/committee":
      return client.committee();
    case "/v1/status":
      return client.status();
    case "account":
      return client.account(accountOf(name));
    case "sent":
      return client.sent(accountOf(name), 0n);
    case "received":
      return client.received(accountOf(name), 0n);
    case "deposits":
      return client.deposits(accountOf(name), 0n);
    case "certificates":
      return client.certificate(accountOf(name), BigInt(number));
    default:
      if (kind === "transfers") return client.transfer(name as Hex);
      throw new Error(`how does the SDK ask for ${path}?`);
  }
}

/** The certificates in a recorded answer. */
function certificatesIn({ path, answer }: Step): unknown[] {
  if (/\/certificates\/\d+$/.test(path)) return [answer];
  return [answer["certificate"] ?? answer["certificates"] ?? []].flat();
}

test.each(steps.filter((step) => !sentByNoClient(step)))("$method $path of the previous release: $status", async (step) => {
  const asked: { line: string; body: string }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    asked.push({ line: `${request.method} ${request.url}`, body: Buffer.concat(chunks).toString() });
    response.writeHead(step.status, { "content-type": "application/json" });
    response.end(JSON.stringify(step.answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const client = new AuthorityClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, NAME, 5_000);
    const answer = ask(client, step);
    if (step.status === 200) {
      const read = (await answer) as Certificate | { entries: Certificate[] };
      const certificates = "entries" in read ? read.entries : [read];
      const written = certificatesIn(step).map((_, i) => JSON.parse(encodeCertificate(certificates[i] as Certificate)));
      expect(written).toEqual(certificatesIn(step));
    } else {
      await expect(answer).rejects.toMatchObject({ code: "refused", status: step.status, problem: step.answer["code"] });
    }
  } finally {
    server.close();
  }
  // It names where a list starts, which the recorded requests leave to the default.
  const line = asked[0]?.line.replace(/[?&]start=0$/, "");
  expect(line).toBe(`${step.method} ${step.path}`);
  if (step.body !== null) expect(JSON.parse(asked[0]?.body ?? "")).toEqual(step.body);
});
