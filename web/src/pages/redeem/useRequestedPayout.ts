import { FastPayError, parseAccount, type AccountId, type Address, type Domain, type Hex } from "@fastpay/sdk";
import { useEffect, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import { isAddress } from "viem";

import { useNetwork } from "../../network/NetworkProvider";

/** A redemption that a merchant's service prepared for its owner to sign (docs/MERCHANT.md). */
export interface RequestedPayout {
  readonly from: AccountId;
  readonly to: Address;
  readonly asset: Address;
  readonly amount: bigint;
  readonly fee: bigint;
  /** The memo by which the service recognizes the order. */
  readonly memo: Hex;
}

/** The payout after the `#` when the page was opened. One that arrives later changes nothing. */
export function useRequestedPayout(): { requested: RequestedPayout | undefined; error: unknown; taken: () => void } {
  const { client } = useNetwork();
  const { hash } = useLocation();
  const navigate = useNavigate();
  const [state, setState] = useState(() => readPayout(hash, client.domain));
  useEffect(() => {
    // Remove the payout from the address, so that a reload does not request it again.
    if (hash.length > 1) void navigate({ hash: "" }, { replace: true });
  }, [hash, navigate]);
  return { requested: state.requested, error: state.error, taken: () => setState({}) };
}

function readPayout(hash: string, own: Domain): { requested?: RequestedPayout; error?: unknown } {
  if (hash.length <= 1) return {};
  const fields = new URLSearchParams(hash.slice(1));
  const [from, chain, contract, to, asset, amount, fee, memo] = ["from", "chain", "contract", "to", "asset", "amount", "fee", "memo"].map(
    (name) => fields.get(name) ?? "",
  ) as [string, string, string, string, string, string, string, string];
  try {
    const isWhole = isAddress(to) && isAddress(asset) && [amount, fee].every((units) => /^\d{1,39}$/.test(units)) && /^0x[0-9a-f]{64}$/.test(memo);
    if (!isWhole) throw new FastPayError("invalid-link", "the payout in this page's address is incomplete", "open it from the merchant's page again");
    if (chain !== String(own.chainId) || contract.toLowerCase() !== own.contract.toLowerCase()) {
      const message = `this payout is for contract ${contract} on chain ${chain}, and this page is for ${own.contract} on chain ${own.chainId}`;
      throw new FastPayError("invalid-link", message, "open it on a page of that deployment");
    }
    const [lowTo, lowAsset] = [to.toLowerCase(), asset.toLowerCase()] as [Address, Address];
    return { requested: { from: parseAccount(from), to: lowTo, asset: lowAsset, amount: BigInt(amount), fee: BigInt(fee), memo: memo as Hex } };
  } catch (error) {
    return { error };
  }
}
