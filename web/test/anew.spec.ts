/** A network that was started anew at the same address: nothing of the old one is used or sent there, and nothing of it is lost. */

import { readFileSync } from "node:fs";

import { startNetwork, type NetworkFile, type StartedNetwork } from "../../sdk/test/support/network";
import { isAccessible } from "./support/axe";
import { depositEther, giveOnChain } from "./support/net";
import { activity, expect, goTo, inFastPay, pay, picture, test } from "./support/people";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/** From the change until the page says so, half a minute: ten times as many as it takes. */
const REQUESTS_MAX = 60;

const read = ({ file }: StartedNetwork): NetworkFile => JSON.parse(readFileSync(file, "utf8"));

/** The page, and the people of the tests, use this network from now on. */
function use(network: StartedNetwork): void {
  process.env.FASTPAY_NETWORK = network.file;
}

let networks: StartedNetwork[] = [];
let everybodys: string | undefined;

test.beforeAll(async () => {
  test.setTimeout(600_000);
  everybodys = process.env.FASTPAY_NETWORK;
  for (const name of ["old", "new"]) networks.push(await startNetwork(`web-${name}-${process.pid}`, false));
});

test.afterAll(async () => {
  if (everybodys !== undefined) process.env.FASTPAY_NETWORK = everybodys;
  await Promise.all(networks.map((network) => network.stop()));
  networks = [];
});

test("the page detects it, uses none of the old data, and starts over when asked to", async ({ page, person }) => {
  const [old, anew] = networks as [StartedNetwork, StartedNetwork];
  expect(read(anew).contract).toBe(read(old).contract);
  use(old);
  const { wallet } = await person({ deposit: "2" });
  await goTo(page, "Pay");
  await pay(page, BOB, "0.5");
  await expect(activity(page, /^Pay 0.5 ETH/).getByText("Done", { exact: true })).toBeVisible();

  // Whoever is asked meanwhile is asked as before, and not again and again.
  let requests = 0;
  page.on("request", () => (requests += 1));
  // The Ethereum node is another chain's from one moment to the next, as after a restart.
  use(anew);
  await page.route(`${read(old).rpc.replace(/\/$/, "")}/**`, (route) => route.continue({ url: read(anew).rpc }));
  const notice = page.getByRole("alert").filter({ hasText: "The network has changed" });
  await expect(notice).toContainText("it may contain unfinished orders of the old network");
  await isAccessible(page);
  expect(requests).toBeLessThan(REQUESTS_MAX);
  await picture(page, "another-network");
  const sent: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && /\/v1\//.test(request.url())) sent.push(request.url());
  });
  await page.reload();
  await expect(notice).toBeVisible();
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(notice).toBeVisible();
  expect(sent).toEqual([]);

  await giveOnChain(wallet.key.address, "10");
  await depositEther(wallet.key, "1");
  await page.getByRole("button", { name: "Set the old data aside" }).click();
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("1");
  await goTo(page, "Pay");
  await pay(page, BOB, "0.25");
  await expect(activity(page, /^Pay 0.25 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "History");
  const history = page.getByRole("region", { name: "History entries" });
  await expect(history).toContainText("−0.25 ETH");
  await expect(history).toContainText("order #0");
  await page.reload();
  await expect(history).toContainText("−0.25 ETH");

  // Back at the old one, its own data are there, without a question.
  await page.unroute(`${read(old).rpc.replace(/\/$/, "")}/**`);
  use(old);
  await page.reload();
  await expect(history).toContainText("−0.5 ETH");
  await expect(history).toContainText(/ordered .*, certified after/);
  await expect(history).not.toContainText("−0.25 ETH");
});
