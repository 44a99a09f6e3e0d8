/**
 * The members of a ledger's settlement cluster, as HTTP servers in this process. They serve reads that the ledger's own
 * rules have made and its members' keys certified (`vectors/ledger-reads.json`), each member those of the state that a
 * test says. The ledger's own tests (`make test-ledger`) show that real members answer in the same way.
 */

import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import type { Hex } from "../../src/index.js";
import type { LedgerDescription } from "../../src/ledger.js";

interface Read {
  readonly key: Hex;
  readonly encoding: Hex;
  readonly value: Hex | null;
}

interface State {
  readonly name: "open" | "funded" | "redeemed" | "requested" | "voided" | "rotated" | "compromised";
  readonly height: number;
  readonly time: number;
  readonly reads: readonly Read[];
}

interface Vectors {
  readonly description: LedgerDescription;
  readonly deployment: Hex;
  readonly states: readonly State[];
  readonly refused: readonly { readonly name: string; readonly key: Hex; readonly encoding: Hex; readonly error: string }[];
  /** Proven, and not what the key demands: no honest cluster certifies it. */
  readonly absurd: readonly { readonly name: string; readonly key: Hex; readonly encoding: Hex }[];
}

export const VECTORS: Vectors = JSON.parse(readFileSync(new URL("../../../vectors/ledger-reads.json", import.meta.url), "utf8"));

/** A time at which every recorded state is new enough. */
export const NOW_MS = VECTORS.states[0]?.time ?? 0;

/** A member of the cluster. */
class Member {
  /** The state that it serves; `away` if it serves none, `silent` if it never answers. */
  serves: State["name"] | "away" | "silent" = "open";
  /** Answers with this in place of a proof. */
  lie: ((key: Hex) => unknown) | undefined;
  asked = 0;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      this.asked += 1;
      if (this.serves === "silent") return;
      const key: Hex = `0x${(request.url ?? "").replace("/v1/state/", "")}`;
      const read = VECTORS.states.find(({ name }) => name === this.serves)?.reads.find((one) => one.key === key);
      const lie = this.lie?.(key);
      const isThere = lie !== undefined || read !== undefined;
      response.writeHead(isThere ? 200 : 503, { "content-type": "application/json" });
      const error = { kind: "busy", message: "nothing is decided yet; try again later" };
      response.end(JSON.stringify(isThere ? (lie ?? { proof: read?.encoding }) : { error }));
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  start(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export class TestLedger {
  readonly members = Array.from({ length: 4 }, () => new Member());

  static async start(): Promise<TestLedger> {
    const ledger = new TestLedger();
    await Promise.all(ledger.members.map((member) => member.start()));
    return ledger;
  }

  /** All members serve this state from now on. */
  reach(state: Member["serves"]): void {
    for (const member of this.members) member.serves = state;
  }

  member(number: number): Member {
    const member = this.members[number];
    if (member === undefined) throw new Error(`there is no member ${number}`);
    return member;
  }

  get description(): LedgerDescription {
    const { description } = VECTORS;
    const members = description.members.map(({ key }, number) => ({ key, http: this.member(number).url }));
    return { ...description, members };
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()));
  }
}
