/** Ethereum nodes that are down or silent are passed over: the page starts, pays and deposits with the one that answers. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { network } from "./support/net";
import { activity, agree, expect, goTo, inFastPay, pay, test } from "./support/people";

let silent: Server;
let asked = 0;

test.beforeAll(async () => {
  silent = createServer(() => {
    // Takes requests, and never answers.
    asked += 1;
  });
  await new Promise<void>((listening) => silent.listen(0, "127.0.0.1", listening));
});

test.afterAll(() => {
  silent.closeAllConnections();
  silent.close();
});

test("with three nodes, one may be down and one silent", async ({ page, person }) => {
  const { chainId, rpc, contract, token, authorities, relayers } = network();
  const silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const nodes = ["http://127.0.0.1:9", silentUrl, rpc];
  await page.route("**/network.json", (route) => route.fulfill({ json: { chainId, rpc: nodes, contract, token, authorities, relayers } }));
  await person({ deposit: "2" });
  expect(asked).toBeGreaterThan(0);
  const before = asked;
  await goTo(page, "Pay");
  await pay(page, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0.5");
  await expect(activity(page, /^Pay 0.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "Deposit");
  await page.getByLabel("Amount", { exact: true }).fill("1");
  await page.getByRole("button", { name: "Deposit 1 ETH" }).click();
  await agree(page);
  await expect(activity(page, "Deposit 1 ETH").getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("2.5");
  // The one that answers is asked on.
  expect(asked).toBe(before);
});

test("without an answering node, the page says so and retries", async ({ page }) => {
  const { chainId, rpc, contract, token, authorities, relayers } = network();
  let nodes = ["http://127.0.0.1:9", "http://127.0.0.1:10"];
  await page.route("**/network.json", (route) => route.fulfill({ json: { chainId, rpc: nodes, contract, token, authorities, relayers } }));
  await page.goto("/");
  await expect(page.getByText("This page cannot reach its network")).toBeVisible();
  nodes = ["http://127.0.0.1:9", rpc];
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByRole("banner").getByRole("button", { name: "Connect wallet" })).toBeEnabled();
});
