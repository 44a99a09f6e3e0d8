/** Four authorities in this process, and people who have money at them. */

import { AuthorityClient } from "../../src/authority.js";
import { Committees } from "../../src/chain/committees.js";
import {
  DEFAULT_TIMING,
  memoryStore,
  type Committee,
  type OrderStore,
  type Receipt,
  type Resumed,
  type Signer,
  type TransferStep,
} from "../../src/index.js";
import { Network } from "../../src/network.js";
import type { Context } from "../../src/wallet/context.js";
import { resume, send } from "../../src/wallet/send.js";
import { authorities, committeeOfKeys, DOMAIN, paymentOf, person } from "./committee.js";
import { TestNode } from "./node.js";

const TIMING = {
  ...DEFAULT_TIMING,
  deadlineMs: 1_500,
  fundsPatienceMs: 200,
  backgroundMs: 300,
  requestMs: 400,
  readMs: 600,
  backoffMinMs: 5,
  backoffMaxMs: 50,
};

export class Scene {
  readonly nodes: readonly TestNode[];
  /** What the contract says, by epoch. */
  readonly epochs: Committee[];
  readonly context: Context;
  readonly steps: TransferStep[] = [];
  readonly alice = person("alice");
  readonly bob = person("bob");

  private constructor(nodes: readonly TestNode[], epochs: Committee[], context: Context) {
    this.nodes = nodes;
    this.epochs = epochs;
    this.context = context;
  }

  /** Alice has 100 at each of four authorities. */
  static async open(store: OrderStore = memoryStore()): Promise<Scene> {
    const keys = authorities(4);
    const nodes = await Promise.all(keys.map((key) => TestNode.start(key)));
    const epochs = [committeeOfKeys(keys)];
    const committees = await Committees.read({
      epoch: async () => BigInt(epochs.length - 1),
      committee: async (epoch) => epochs[Number(epoch)] as Committee,
    });
    const clients = nodes.map(({ url, keys: { votingKey } }) => new AuthorityClient(url, votingKey, TIMING.requestMs));
    const network = new Network(DOMAIN, committees, clients, TIMING);
    // No test here speaks to a contract.
    const context: Context = { network, contract: undefined as never, store, timing: TIMING };
    const scene = new Scene(nodes, epochs, context);
    for (const node of nodes) node.account(scene.alice.account).balance = 100n;
    return scene;
  }

  node(number: number): TestNode {
    const node = this.nodes[number];
    if (node === undefined) throw new Error(`there is no node ${number}`);
    return node;
  }

  /** Alice pays Bob. */
  pay(amount: bigint, options: { signer?: Signer; signal?: AbortSignal; store?: OrderStore } = {}): Promise<Receipt> {
    const signer = options.signer ?? this.alice;
    const context = options.store === undefined ? this.context : { ...this.context, store: options.store };
    const intent = (sequence: bigint) => paymentOf(signer.account, this.bob.account, amount, sequence);
    return send(context, signer, intent, (step) => this.steps.push(step), options.signal);
  }

  resume(store = this.context.store): Promise<Resumed[]> {
    return resume({ ...this.context, store }, this.alice.account, (step) => this.steps.push(step), undefined);
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}
