/** Four authorities in this process, and people with money there. */

import { AuthorityClient } from "../../src/authority.js";
import { Committees } from "../../src/chain/committees.js";
import {
  DEFAULT_TIMING,
  ETHER,
  memoryStore,
  NO_MEMO,
  type Certificate,
  type Committee,
  type OrderStore,
  type Receipt,
  type Redemption,
  type Resumed,
  type Signer,
  type Timing,
  type TransferStep,
} from "../../src/index.js";
import type { Contract } from "../../src/chain/contract.js";
import type { Spending } from "../../src/chain/spending.js";
import { Network } from "../../src/network.js";
import type { Primary } from "../../src/primary.js";
import type { Context } from "../../src/wallet/context.js";
import { resume, send } from "../../src/wallet/send.js";
import { encodeCertificate } from "../../src/wire.js";
import { authorities, committeeOfKeys, DOMAIN, paymentOf, person, signed } from "./committee.js";
import { receivedJson, TestNode } from "./node.js";

/** Long timeouts for a busy machine. The tested behaviour does not depend on them. */
export const TIMING: Timing = {
  ...DEFAULT_TIMING,
  deadlineMs: 60_000,
  fundsPatienceMs: 300,
  backgroundMs: 5_000,
  requestMs: 30_000,
  readMs: 30_000,
  backoffMinMs: 5,
  backoffMaxMs: 50,
};

interface PayOptions {
  readonly signer?: Signer;
  readonly signal?: AbortSignal;
  readonly store?: OrderStore;
  readonly network?: Network;
  readonly timing?: Partial<Timing>;
  readonly onStep?: (step: TransferStep) => void;
}

/** What the contract has. */
interface OnChain {
  /** The committees, by epoch. */
  readonly epochs: Committee[];
  /** The epochs whose keys were out. */
  readonly compromised: Set<bigint>;
  /** The numbers that it voided. */
  readonly voided: Set<bigint>;
  /** The numbers that it spent, and what its log says of each; undefined: the node serves no log. */
  readonly spent: Map<bigint, Spending | undefined>;
}

/** The parts of a context whose Primary is this contract. */
export function onContract(contract: Contract): { primary: Contract; contract: Contract } {
  return { primary: contract, contract };
}

async function contextOf(nodes: readonly TestNode[], { epochs, compromised, voided, spent }: OnChain): Promise<Context> {
  const source = { epoch: async () => BigInt(epochs.length - 1), committee: async (epoch: bigint) => epochs[Number(epoch)] as Committee, isClosing: async (epoch: bigint) => !compromised.has(epoch) };
  const first = Promise.resolve(epochs[0] as Committee);
  const committees = new Committees(source, await Committees.readCurrent(source, first), first);
  const clients = nodes.map(({ url, keys: { votingKey } }) => new AuthorityClient(url, votingKey, TIMING.requestMs));
  const network = new Network(DOMAIN, committees, clients, TIMING);
  const unlockStatus: Contract["unlockStatus"] = async (_, sequence) => ({ state: voided.has(sequence) ? "voided" : "none" });
  const isSpent: Contract["isSpent"] = async (_, sequence) => spent.has(sequence);
  const finalSpending: Primary["finalSpending"] = async (_, sequence) => spent.get(sequence);
  // Tests that need more of a contract pass their own.
  return { network, primary: { unlockStatus, isSpent, finalSpending } as Primary, store: memoryStore(), timing: TIMING, relayers: [] };
}

export class Scene {
  readonly nodes: readonly TestNode[];
  readonly chain: OnChain;
  readonly context: Context;
  readonly steps: TransferStep[] = [];
  readonly alice = person("alice");
  readonly bob = person("bob");

  private constructor(nodes: readonly TestNode[], chain: OnChain, context: Context) {
    this.nodes = nodes;
    this.chain = chain;
    this.context = context;
  }

  /** Alice has 100 at each of four authorities. */
  static async open(): Promise<Scene> {
    const keys = authorities(4);
    const nodes = await Promise.all(keys.map((key) => TestNode.start(key)));
    const chain: OnChain = { epochs: [committeeOfKeys(keys)], compromised: new Set(), voided: new Set(), spent: new Map() };
    const scene = new Scene(nodes, chain, await contextOf(nodes, chain));
    for (const node of nodes) node.account(scene.alice.account).balance = 100n;
    return scene;
  }

  /** The context of a client that starts now, with the contract's current committees. */
  later(): Promise<Context> {
    return contextOf(this.nodes, this.chain);
  }

  node(number: number): TestNode {
    const node = this.nodes[number];
    if (node === undefined) throw new Error(`there is no node ${number}`);
    return node;
  }

  /** A context with timeouts longer than a test: a client that waits for a hanging authority waits for ever. */
  patient(): Context {
    const hourMs = 3_600_000;
    const clients = this.nodes.map(({ url, keys }) => new AuthorityClient(url, keys.votingKey, hourMs));
    const network = new Network(DOMAIN, this.context.network.committees, clients, { readMs: hourMs });
    return { ...this.context, network };
  }

  /** Alice pays Bob. */
  pay(amount: bigint, options: PayOptions = {}): Promise<Receipt> {
    const { signer = this.alice, store = this.context.store, network = this.context.network, timing } = options;
    const context = { ...this.context, network, store, timing: { ...TIMING, ...timing } };
    const intent = (sequence: bigint) => paymentOf(signer.account, this.bob.account, amount, sequence);
    const report = (step: TransferStep): void => {
      this.steps.push(step);
      options.onStep?.(step);
    };
    return send(context, signer, intent, report, options.signal);
  }

  /** Alice redeems, without a request to the contract. */
  redeem(amount: bigint): Promise<Receipt> {
    const intent = (sequence: bigint): Redemption => ({
      type: "redemption",
      sender: this.alice.account,
      recipient: "0x00000000000000000000000000000000000000aa",
      asset: ETHER,
      amount,
      fee: 0n,
      sequence,
      memo: NO_MEMO,
    });
    return send(this.context, this.alice, intent, (step) => this.steps.push(step), undefined);
  }

  /** All authorities vote with new keys from now on. The contract has the new committee only if `isKnown`. */
  rotate(isKnown = true): Committee {
    const epoch = this.nodes[0] === undefined ? 1n : this.nodes[0].epoch + 1n;
    const keys = authorities(this.nodes.length, `epoch ${epoch}`);
    for (const [number, node] of this.nodes.entries()) Object.assign(node, { keys: keys[number], epoch });
    const committee = committeeOfKeys(keys, epoch);
    if (isKnown) this.chain.epochs.push(committee);
    return committee;
  }

  /** A recovery installs a new committee, which begins with the 100 that Alice deposited. */
  recover(): void {
    this.rotate();
    for (const node of this.nodes) {
      node.beginAnew();
      node.account(this.alice.account).balance = 100n;
    }
  }

  /** A certificate of Alice's first order, a payment of this amount to Bob, by the present committee. Nobody has it. */
  async certified(amount: bigint): Promise<Certificate> {
    const { transfer, authorization } = await signed(this.alice, paymentOf(this.alice.account, this.bob.account, amount, 0n));
    const { epoch } = this.node(0);
    const votes = this.nodes.slice(0, 3).map(({ keys }) => keys.vote(epoch, transfer));
    votes.sort((a, b) => (a.authority < b.authority ? -1 : 1));
    return { order: { transfer, authorization }, epoch, votes };
  }

  /** Has an authority list what a certificate pays to Bob and nothing else, and show that certificate. */
  lists(node: number, certificate: Certificate): void {
    const counts = { nextSequence: "0", received: "1", deposits: "0" };
    const shown = encodeCertificate(certificate);
    this.node(node).lie = ({ path }) => {
      if (path.endsWith("/received")) return { status: 200, body: { total: "1", payments: [receivedJson(certificate, 0)] } };
      if (path.endsWith("/certificates/read")) return { status: 200, body: { certificates: [JSON.parse(shown)], lookedUp: 1 } };
      if (path.includes("/certificates/")) return { status: 200, body: shown };
      return path.startsWith("/v1/accounts/") ? { status: 200, body: { ...counts, pending: null, holdings: [], truncated: false } } : undefined;
    };
  }

  /** Finishes Alice's unfinished orders. */
  resume(store = this.context.store): Promise<Resumed[]> {
    return resume({ ...this.context, store }, this.alice.account, (step) => this.steps.push(step), undefined);
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}
