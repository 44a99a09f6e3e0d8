/**
 * An authority in this process, with real keys, behind a real HTTP port. It follows the rules of the protocol that a
 * client can observe. Tests of hostile cases replace single answers. The live tests show that honest nodes answer in
 * the same way.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import {
  amountOf,
  formatAccount,
  parseAccount,
  paymentIn,
  transferDigest,
  type AccountId,
  type Certificate,
  type Hex,
  type Payment,
  type Redemption,
  type Transfer,
  type TransferOrder,
} from "../../src/index.js";
import { decodeCertificate, decodeOrder, encodeCertificate, encodeOrder } from "../../src/wire.js";
import type { TestArchive } from "./archive.js";
import { DOMAIN, type Keys } from "./committee.js";

/** A request, as passed to `lie`. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: string;
}

/** An answer: a status and JSON; `hang` for no answer; or a function that writes the response itself. */
export type Answer = { status: number; body: unknown } | "hang" | ((response: ServerResponse) => void);

interface State {
  next: bigint;
  pending: TransferOrder | undefined;
  balance: bigint;
  /** The certificates, by number; undefined for a void number. */
  sent: (Certificate | undefined)[];
  /** For the number to unlock: the order that the contract upheld, and the certificate that was seen meanwhile. */
  frozen: { upheld: Hex | undefined; seen: Certificate | undefined } | undefined;
  /** The number that a recovery debited behind a gap. */
  debited: bigint | undefined;
  received: { certificate: Certificate; output: number | undefined }[];
  /** The first entries that are not pruned. */
  kept: { sent: number; received: number };
}

export function problem(status: number, code: string, facts: object = {}, retry = "after-change"): Answer {
  return {
    status,
    body: { type: `urn:fastpay:problem:${code}`, title: code, status, code, action: "", retry, ...facts },
  };
}

export class TestNode {
  readonly keys: Keys;
  epoch = 0n;
  url = "";
  /** Certificates of epochs before this one have ended with a recovery. */
  #countsSince = 0n;
  /** The bodies of all requests with orders. */
  readonly orders: string[] = [];
  /** Returns an answer in place of the honest one; undefined for the honest answer. */
  lie: (request: Request) => Answer | undefined = () => undefined;
  /** The archive that it serves. */
  archive: TestArchive | undefined;
  /** The number of the checkpoint up to which it has pruned. */
  #checkpoint = 0;
  readonly #accounts = new Map<string, State>();
  /** The confirmed transfers, newest last. */
  readonly #confirmed: { sender: string; sequence: string; digest: Hex }[] = [];
  readonly #server: Server;

  private constructor(keys: Keys) {
    this.keys = keys;
    this.#server = createServer((request, response) => void this.#handle(request, response));
  }

  static async start(keys: Keys): Promise<TestNode> {
    const node = new TestNode(keys);
    await new Promise<void>((resolve) => node.#server.listen(0, "127.0.0.1", resolve));
    node.url = `http://127.0.0.1:${(node.#server.address() as AddressInfo).port}`;
    return node;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Begins anew in the present epoch, which a recovery has installed, with nothing. */
  beginAnew(): void {
    this.#countsSince = this.epoch;
    this.#accounts.clear();
    this.#confirmed.length = 0;
  }

  account(id: string): State {
    const known = this.#accounts.get(id);
    if (known !== undefined) return known;
    const state: State = { next: 0n, pending: undefined, balance: 0n, sent: [], frozen: undefined, debited: undefined, received: [], kept: { sent: 0, received: 0 } };
    this.#accounts.set(id, state);
    return state;
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of incoming) body += String(chunk);
    const url = new URL(incoming.url ?? "/", "http://localhost");
    const request = {
      method: incoming.method ?? "GET",
      path: decodeURIComponent(url.pathname),
      query: url.searchParams,
      body,
    };
    if (request.path === "/v1/orders") this.orders.push(body);
    const answer = this.lie(request) ?? this.honest(request);
    if (answer === "hang") return;
    if (typeof answer === "function") return answer(response);
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body));
  }

  honest({ method, path, query, body }: Request): Answer {
    if (method === "POST" && path === "/v1/orders") return this.#lock(decodeOrder(JSON.parse(body), "order"));
    if (method === "POST" && path === "/v1/certificates")
      return this.confirm(decodeCertificate(JSON.parse(body), "certificate"));
    if (method === "POST" && path === "/v1/redemptions/votes") return this.#voteAgain(JSON.parse(body));
    if (method === "POST" && path === "/v1/unlocks/votes") return this.#voteAbout(JSON.parse(body));
    if (method === "POST" && path === "/v1/certificates/read") return this.#read(JSON.parse(body));
    if (path === "/v1/status") return this.#status();
    if (path === "/v1/transfers") return { status: 200, body: { transfers: this.#confirmed.slice(-20).reverse() } };
    const [, , , account = "", list, number] = path.split("/");
    if (!path.startsWith("/v1/accounts/")) return problem(404, "not-found");
    const state = this.account(parseAccount(account));
    const start = Number(query.get("start") ?? 0);
    if (list === undefined) return this.#state(state);
    if (list === "archived") return this.#archived(parseAccount(account), number, query);
    if (list === "sent" || list === "received") {
      const total = list === "sent" ? state.sent.length : state.received.length;
      if (start < state.kept[list] && start < total) return this.#pruned(state.kept[list]);
    }
    if (list === "certificates") {
      if (Number(number) < state.kept.sent) return this.#pruned(state.kept.sent);
      const found = state.sent[Number(number)];
      return found === undefined ? problem(404, "not-found") : { status: 200, body: encodeCertificate(found) };
    }
    if (list === "received") {
      const payments = state.received.slice(start).map(({ certificate, output }, i) => receivedJson(certificate, start + i, output, this.keys.domain));
      return { status: 200, body: { total: String(state.received.length), payments } };
    }
    if (list === "deposits") return { status: 200, body: { total: "0", deposits: [] } };
    if (list === "sent") return { status: 200, body: { total: String(state.sent.length), transfers: [] } };
    return problem(404, "not-found");
  }

  /** Prunes all that it has confirmed, and serves `archive` up to the checkpoint of this number. */
  prune(archive: TestArchive, checkpoint: number): void {
    Object.assign(this, { archive });
    this.#checkpoint = checkpoint;
    for (const state of this.#accounts.values()) state.kept = { sent: state.sent.length, received: state.received.length };
  }

  #pruned(first: number): Answer {
    return problem(410, "pruned", { first: String(first), checkpoint: String(this.#checkpoint) }, "never");
  }

  #archived(account: AccountId, list: string | undefined, query: URLSearchParams): Answer {
    if (this.archive === undefined) return problem(404, "not-archived");
    const isSent = list === "sent";
    const limit = Number(query.get("limit") ?? 100);
    const page = isSent
      ? this.archive.sent(account, BigInt(query.get("from") ?? "0"), limit, query.get("paid") === "true")
      : this.archive.received(account, query.get("cursor") ?? "0.0", limit);
    return page === undefined ? problem(404, "not-archived") : { status: 200, body: page };
  }

  /** A recovery debited what the contract had paid under a number of an account that goes on with the number `next`. */
  debit({ sender, sequence, amount }: Redemption, next: bigint): void {
    const state = this.account(sender);
    state.balance -= amount;
    state.next = next;
    state.sent = Array.from({ length: Number(next) }, () => undefined);
    if (sequence >= next) state.debited = sequence;
  }

  /** Steps over the number that a recovery debited, once the account has reached it. */
  #stepOver(state: State): void {
    if (state.debited !== state.next) return;
    Object.assign(state, { debited: undefined, next: state.next + 1n, sent: [...state.sent, undefined] });
  }

  /** Reads that the owner asked the contract to unlock the account's next number. */
  freeze(account: string): void {
    this.account(account).frozen ??= { upheld: undefined, seen: undefined };
  }

  /** Reads the contract's decision about that number: for this order, or for none. */
  decide(account: string, upheld: Hex | undefined): void {
    const state = this.account(account);
    if (upheld !== undefined) return void (state.frozen = { seen: undefined, ...state.frozen, upheld });
    Object.assign(state, { frozen: undefined, pending: undefined, next: state.next + 1n, sent: [...state.sent, undefined] });
  }

  #voteAbout({ account, sequence, unanimous }: { account: string; sequence: string; unanimous: boolean }): Answer {
    const [id, number] = [parseAccount(account), BigInt(sequence)];
    const state = this.account(id);
    const certificate = state.sent[Number(number)] ?? (number === state.next ? state.frozen?.seen : undefined);
    const epoch = { epoch: this.epoch.toString() };
    if (certificate !== undefined) {
      const digest = transferDigest(this.keys.domain, certificate.order.transfer);
      const vote = this.keys.certificateVote(this.epoch, id, number, digest);
      return { status: 200, body: { type: "certificate", certificate: JSON.parse(encodeCertificate(certificate)), ...epoch, ...vote } };
    }
    if (number < state.next) return problem(409, "voided", { expectedSequence: state.next.toString() }, "never");
    if (state.frozen === undefined) return problem(409, "not-requested", { expectedSequence: sequence }, "later");
    return { status: 200, body: { type: "void", ...epoch, ...this.keys.voidVote(this.epoch, id, number, unanimous) } };
  }

  #status(): Answer {
    const about = { version: "0.0.0", chainId: this.keys.domain.chainId.toString(), epoch: this.epoch.toString(), votes: true };
    return { status: 200, body: { authority: this.keys.votingKey, ...about, follower: { state: "at-head" }, shards: [] } };
  }

  #read({ names }: { names: { sender: string; sequence: string }[] }): Answer {
    const keptOf = ({ sender }: { sender: string }): number => this.account(parseAccount(sender)).kept.sent;
    const gone = names.findIndex((name) => Number(name.sequence) < keptOf(name));
    if (gone === 0 && names[0] !== undefined) return this.#pruned(keptOf(names[0]));
    const kept = gone === -1 ? names : names.slice(0, gone);
    const found = kept.flatMap(({ sender, sequence }) => this.account(parseAccount(sender)).sent[Number(sequence)] ?? []);
    const certificates = found.map((certificate) => JSON.parse(encodeCertificate(certificate)));
    return { status: 200, body: { certificates, lookedUp: kept.length } };
  }

  #state({ next, pending, balance, received }: State): Answer {
    const holdings = balance === 0n ? [] : [{ asset: `0x${"0".repeat(40)}`, balance: balance.toString() }];
    const shown = pending === undefined ? null : JSON.parse(encodeOrder(pending));
    const counts = { nextSequence: next.toString(), received: String(received.length), deposits: "0" };
    return { status: 200, body: { ...counts, pending: shown, holdings, truncated: false } };
  }

  #lock(order: TransferOrder): Answer {
    const { transfer } = order;
    const state = this.account(transfer.sender);
    this.#stepOver(state);
    const expectedSequence = state.next.toString();
    if (transfer.sequence === state.next && state.frozen !== undefined) return problem(409, "frozen", { expectedSequence });
    if (isVoid(state, transfer.sequence)) return problem(409, "voided", { expectedSequence }, "never");
    if (state.pending !== undefined) {
      const isSame = transferDigest(this.keys.domain, state.pending.transfer) === transferDigest(this.keys.domain, transfer);
      if (!isSame) return problem(409, "order-pending", { pending: JSON.parse(encodeOrder(state.pending)) });
    } else {
      if (transfer.sequence > state.next) return problem(409, "sequence-too-high", { expectedSequence });
      if (transfer.sequence < state.next) return problem(409, "already-confirmed", { expectedSequence });
      if (state.balance < amountOf(transfer))
        return problem(409, "insufficient-balance", { balance: state.balance.toString() });
      state.pending = order;
    }
    const { siblings, ...vote } = { siblings: undefined, ...this.keys.vote(this.epoch, transfer) };
    return {
      status: 200,
      body: { epoch: this.epoch.toString(), vote: siblings === undefined ? vote : { ...vote, siblings } },
    };
  }

  #voteAgain({ redemptions }: { redemptions: { sender: string; sequence: string }[] }): Answer {
    const found = redemptions.map(({ sender, sequence }) => {
      const transfer = this.account(parseAccount(sender)).sent[Number(sequence)]?.order.transfer;
      return transfer?.type === "redemption" ? transfer : undefined;
    });
    const positions = found.flatMap((redemption, position) => (redemption === undefined ? [position] : []));
    if (positions.length > 0) return problem(409, "redemptions-missing", { positions });
    const confirmed = found.filter((redemption) => redemption !== undefined);
    return { status: 200, body: { epoch: this.epoch.toString(), ...this.keys.batchVote(this.epoch, confirmed) } };
  }

  /** Confirms a certificate without verifying it. In the live tests, real nodes verify what clients send. */
  confirm(certificate: Certificate): Answer {
    const { transfer } = certificate.order;
    if (certificate.epoch < this.#countsSince) return problem(409, "epoch-ended", { epoch: this.#countsSince.toString() }, "never");
    const state = this.account(transfer.sender);
    this.#stepOver(state);
    if (transfer.sequence > state.next) {
      return problem(409, "missing-certificate", { expectedSequence: state.next.toString() });
    }
    if (isVoid(state, transfer.sequence)) return problem(409, "voided", { expectedSequence: state.next.toString() }, "never");
    if (transfer.sequence === state.next && state.frozen !== undefined) {
      state.frozen.seen ??= certificate;
      if (state.frozen.upheld !== transferDigest(this.keys.domain, transfer)) return problem(409, "frozen");
      state.frozen = undefined;
    }
    if (transfer.sequence === state.next) {
      state.next += 1n;
      state.pending = undefined;
      state.balance -= amountOf(transfer);
      state.sent.push(certificate);
      const name = { sender: formatAccount(transfer.sender), sequence: transfer.sequence.toString() };
      this.#confirmed.push({ ...name, digest: transferDigest(this.keys.domain, transfer) });
      for (const { payment, output } of paymentsOf(transfer)) {
        const recipient = this.account(payment.recipient);
        recipient.balance += payment.amount;
        recipient.received.push({ certificate, output });
      }
    }
    return { status: 200, body: { nextSequence: state.next.toString(), epoch: this.epoch.toString() } };
  }
}

function isVoid({ next, sent }: State, sequence: bigint): boolean {
  return sequence < next && sent[Number(sequence)] === undefined;
}

/** The same answer a moment later. */
export function later(answer: Answer): Answer {
  if (typeof answer !== "object") throw new Error("an honest one answers");
  return (response) => {
    const send = (): void => {
      response.writeHead(answer.status, { "content-type": "application/json" });
      response.end(typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body));
    };
    setTimeout(send, 50);
  };
}

/** An entry of a list of received payments. */
export function receivedJson(certificate: Certificate, number: number, output?: number, domain = DOMAIN): object {
  const { transfer } = certificate.order;
  const paid = paymentIn(transfer, output);
  if (paid === undefined) throw new Error("there is no such payment");
  const payment = {
    type: "payment",
    sender: formatAccount(paid.sender),
    recipient: formatAccount(paid.recipient),
    asset: paid.asset,
    amount: paid.amount.toString(),
    sequence: paid.sequence.toString(),
    memo: paid.memo,
  };
  return {
    number: String(number),
    payment,
    ...(output === undefined ? {} : { output }),
    digest: transferDigest(domain, transfer) satisfies Hex,
  };
}

function paymentsOf(transfer: Transfer): { payment: Payment; output: number | undefined }[] {
  const outputs = transfer.type === "payout" ? [...transfer.outputs.keys()] : [undefined];
  return outputs.flatMap((output) => {
    const payment = paymentIn(transfer, output);
    return payment === undefined ? [] : [{ payment, output }];
  });
}
