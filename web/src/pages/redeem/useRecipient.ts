import type { Address } from "@fastpay/sdk";
import { useQuery } from "@tanstack/react-query";
import { isAddress } from "viem";

import { useEns } from "../../ethereum/ens";
import { useNetwork } from "../../network/NetworkProvider";

/** The recipient on Ethereum, or the reason why it is invalid. */
export interface Recipient {
  readonly address: Address | undefined;
  readonly fault: string | undefined;
  /** The ENS name that was resolved to it. */
  readonly ens: string | undefined;
}

/** Parses an Ethereum address or ENS name. Refuses FastPay's own contracts, because money paid to them is lost. */
export function useRecipient(text: string): Recipient {
  const { client } = useNetwork();
  const named = useEns(text);
  const address = isAddress(text) ? (text.toLowerCase() as Address) : named.address;
  const ens = named.address && named.name;
  const isFastPay = useQuery({
    queryKey: ["chain", "is-fastpay", address],
    queryFn: () => client.isFastPay(address as Address),
    enabled: address !== undefined,
    staleTime: Infinity,
  });
  if (address === undefined) {
    const fault = text === "" ? undefined : named.isName ? named.fault : "This is not an Ethereum address, or it is mistyped.";
    return { address, fault, ens };
  }
  if (isFastPay.data !== true) return { address, fault: undefined, ens };
  return { address: undefined, fault: "This is a FastPay contract. Money paid to it is lost.", ens };
}
