import { createPublicClient, createWalletClient, http, type Hex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import {
  ed25519Signer, encodeMemo, ETHER, ethereumSigner, FastPay, formatAccount,
  formatAmount, memoryStore, parseAmount, verifyCertificate, type AuthorityEndpoint,
} from "@fastpay/sdk";

interface Deployment {
  rpc: string;
  chainId: number;
  contract: Hex;
  authorities: readonly AuthorityEndpoint[];
  /** The base URLs of relayers. */
  relayers?: readonly string[];
}

export async function quickstart(deployment: Deployment, key: Hex) {
  const { rpc, chainId, contract, authorities, relayers = [] } = deployment;

  // An Ethereum node that you trust, and the storage for orders, which are stored before they are sent. In a browser,
  // omit `storage` to use IndexedDB; in Node.js, pass `await folderStore("…")` of @fastpay/sdk/node.
  const publicClient = createPublicClient({ chain: foundry, transport: http(rpc) });
  const storage = memoryStore();
  const fastpay = await FastPay.create({ publicClient, contract, chainId, authorities, relayers, storage });

  // A user with money on Ethereum. In a browser: ethereumSigner(window.ethereum, address).
  const wallet = createWalletClient({ account: privateKeyToAccount(key), chain: foundry, transport: http(rpc) });
  const alice = ethereumSigner(wallet);

  // Deposit: send a transaction, and wait until its block is final and a quorum has credited it.
  const amount = parseAmount("0.5", 18);
  const { deposit } = await fastpay.deposit(wallet, { asset: ETHER, amount });
  console.log(`deposit ${deposit.index} of ${formatAmount(deposit.amount, 18)} ETH is credited`);

  // Pay: certified after one round trip, settled and final after the second.
  const carol = ed25519Signer(generatePrivateKey());
  const { certificate, certifiedAfterMs } = await fastpay.pay(
    alice,
    { recipient: carol.account, asset: ETHER, amount: parseAmount("0.2", 18), memo: encodeMemo("invoice 7") },
    { onProgress: (step) => console.log(`${step.afterMs.toFixed(1)} ms: ${step.type}`) },
  );
  console.log(`${formatAccount(carol.account)} is paid; certified after ${certifiedAfterMs.toFixed(1)} ms`);

  // Anyone can verify the certificate offline, with the committee that the contract lists.
  verifyCertificate(certificate, await fastpay.committee(certificate.epoch), fastpay.domain);

  // An account's balances, as confirmed by f + 1 authorities.
  const { balances } = await fastpay.account(carol.account);

  // Redeem to Ethereum. A relayer submits it to the contract for the fee, or you do with fastpay.redeemOnChain.
  const recipient = wallet.account.address;
  const { proposed: fee = 0n } = await fastpay.relayerFees(ETHER);
  const out = await fastpay.redeem(alice, { recipient, asset: ETHER, amount: parseAmount("0.1", 18), fee });
  const payout = await fastpay.redeemOnChain(wallet, out.certificate);

  // Stop background work, such as bringing slow authorities up to date, so that the program can exit.
  fastpay.close();
  return { balances, payout };
}
