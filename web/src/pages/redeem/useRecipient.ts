import type { Address } from "@fastpay/sdk";
import { useQuery } from "@tanstack/react-query";
import { isAddress } from "viem";

import { useNetwork } from "../../network/NetworkProvider";

/** The recipient on Ethereum, or the reason why it is invalid. */
export interface Recipient {
  readonly address: Address | undefined;
  readonly fault: string | undefined;
}

/** Reads an Ethereum address. What is paid to FastPay's own contracts is lost, so they are refused. */
export function useRecipient(text: string): Recipient {
  const { client } = useNetwork();
  const address = isAddress(text) ? (text.toLowerCase() as Address) : undefined;
  const isFastPay = useQuery({
    queryKey: ["chain", "is-fastpay", address],
    queryFn: () => client.isFastPay(address as Address),
    enabled: address !== undefined,
    staleTime: Infinity,
  });
  if (address === undefined) {
    return { address, fault: text === "" ? undefined : "This is no Ethereum address, or mistyped." };
  }
  if (isFastPay.data !== true) return { address, fault: undefined };
  return { address: undefined, fault: "This is a contract of FastPay itself. Money paid to it is lost." };
}
