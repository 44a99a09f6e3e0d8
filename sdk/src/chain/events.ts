/** The contract's events in a transaction. */

import { parseEventLogs, type TransactionReceipt } from "viem";

import { accountFromBytes32 } from "../accounts.js";
import { lower, type Address } from "../bytes.js";
import type { ContractEvent } from "../views.js";
import { FASTPAY_ABI } from "./abi.js";

const NAMES = ["Funded", "Redeemed", "RedemptionQueued", "RedemptionReleased", "Claimed"] as const;
const STATES = { Redeemed: "paid", RedemptionQueued: "queued", RedemptionReleased: "released" } as const;

/** The events that the contract emitted in a transaction, in their order. */
export function eventsOf(contract: Address, { logs }: Pick<TransactionReceipt, "logs">): ContractEvent[] {
  const events = parseEventLogs({ abi: FASTPAY_ABI, eventName: [...NAMES], logs });
  return events.filter(({ address }) => address.toLowerCase() === contract.toLowerCase()).map(readEvent);
}

function readEvent(event: ReturnType<typeof parseEventLogs<typeof FASTPAY_ABI, true, (typeof NAMES)[number]>>[number]): ContractEvent {
  switch (event.eventName) {
    case "Funded": {
      const { index, recipient, asset, amount } = event.args;
      return { type: "deposit", index, recipient: accountFromBytes32(recipient), asset: lower(asset), amount };
    }
    case "Claimed": {
      const { owner, asset, to, amount } = event.args;
      return { type: "claim", owner: lower(owner), asset: lower(asset), to: lower(to), amount };
    }
    default: {
      const { sender, sequence, digest } = event.args;
      const state = STATES[event.eventName];
      return { type: "redemption", state, sender: accountFromBytes32(sender), sequence, digest: lower(digest) };
    }
  }
}
