/**
 * The first visit on a slow phone: what it takes, and until when. The page is served compressed, as docs/WEB.md tells
 * whoever hosts it; the browser gets 1.6 Mbit/s down, 0.75 up, a latency of 150 ms and a processor four times slower,
 * which is what Lighthouse calls slow 4G on a phone.
 */

import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, resolve } from "node:path";
import { gzipSync } from "node:zlib";

import type { Page } from "@playwright/test";

import { network } from "./support/net";
import { expect, test } from "./support/people";

const DIST = resolve(import.meta.dirname, "../dist");
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const REQUESTS_MAX = 12;
/** Also what is asked of the Ethereum node, and what HTTP adds. */
const BYTES_MAX = 300_000;

let server: Server;

test.beforeAll(async () => {
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://page");
    const isConfig = pathname === "/network.json";
    const file = pathname === "/" ? "/index.html" : pathname;
    const content = isConfig ? configuration() : readFileSync(`${DIST}${file}`);
    const type = isConfig ? "application/json" : (TYPES[extname(file)] ?? "application/octet-stream");
    response.writeHead(200, { "content-type": type, "content-encoding": "gzip" }).end(gzipSync(content));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
});

test.afterAll(() => {
  server.close();
});

function configuration(): string {
  const { chainId, rpc, contract, token, authorities, relayers } = network();
  return JSON.stringify({ chainId, rpc, contract, token, authorities, relayers });
}

test("the first page is small, sends few requests and is soon usable", async ({ page }) => {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  const mbit = 1_000_000 / 8;
  const slow4g = { offline: false, latency: 150, downloadThroughput: 1.6 * mbit, uploadThroughput: 0.75 * mbit };
  await devtools.send("Network.emulateNetworkConditions", slow4g);
  await devtools.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  const requests: string[] = [];
  let bytes = 0;
  // Of the script that the client needs and of what the Ethereum node is asked, in the order in which it happens.
  const order: string[] = [];
  const scripts = new Set<string>();
  devtools.on("Network.requestWillBeSent", ({ requestId, request }) => {
    requests.push(request.url);
    if (/\/libraries-.*\.js$/.test(request.url)) scripts.add(requestId);
    if (request.method === "POST") order.push(request.url === new URL(network().rpc).href ? "the node is asked" : request.url);
  });
  devtools.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    bytes += encodedDataLength;
    if (scripts.has(requestId)) order.push("the code is here");
  });

  const since = performance.now();
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { waitUntil: "commit" });
  await expect(page.getByRole("banner").getByRole("button", { name: "Connect wallet" })).toBeEnabled();
  // For docs/WEB.md; it is not judged, because other tests take the processor as well.
  const usableMs = performance.now() - since;
  await page.waitForLoadState("networkidle");

  console.log(`usable after ${(usableMs / 1_000).toFixed(1)} s; ${requests.length} requests, ${(bytes / 1_000).toFixed(0)} kB`);
  expect(requests.length, requests.join("\n")).toBeLessThanOrEqual(REQUESTS_MAX);
  expect(bytes).toBeLessThanOrEqual(BYTES_MAX);
  // The node is asked once, while the code is on its way.
  expect(order).toEqual(["the node is asked", "the code is here"]);
});

/** Keeps the wallet's code back until the function is called. */
async function holdCode(page: Page): Promise<() => void> {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route(/\/page-.*\.js$/, async (route) => {
    await held;
    await route.continue();
  });
  return release;
}

test("a button pressed before the wallet's code has loaded acts once it has", async ({ page }) => {
  const release = await holdCode(page);
  await page.goto("/");
  const connect = page.getByRole("banner").getByRole("button", { name: "Connect wallet" });
  const first = await connect.elementHandle();
  await connect.press("Enter");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  release();
  await expect(page.getByRole("dialog").getByRole("button", { name: "Create a key" })).toBeVisible();
  // The focus is on the button that took its place, and comes back to it.
  expect(await first?.evaluate((node) => node.isConnected)).toBe(false);
  await page.keyboard.press("Escape");
  await expect(connect).toBeFocused();
});

test("a press under way when the wallet's code has loaded opens the dialog; one that was dragged away does not", async ({ page }) => {
  const connect = page.getByRole("banner").getByRole("button", { name: "Connect wallet" });
  const dialog = page.getByRole("dialog");
  for (const isDrawnAway of [false, true]) {
    const release = await holdCode(page);
    await page.goto("/");
    await connect.hover();
    const first = await connect.elementHandle();
    await page.mouse.down();
    if (isDrawnAway) await page.mouse.move(5, 500);
    release();
    await expect.poll(() => first?.evaluate((node) => node.isConnected)).toBe(false);
    await page.mouse.up();
    if (isDrawnAway) {
      await expect(connect).toBeEnabled();
      await expect(dialog).toHaveCount(0);
    } else await expect(dialog.getByRole("button", { name: "Create a key" })).toBeVisible();
  }
});

test("an early press is kept when the focus moves, and dropped on another page", async ({ page }) => {
  const release = await holdCode(page);
  await page.goto("/");
  await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).press("Enter");
  await page.getByRole("main").getByRole("button", { name: "Connect wallet" }).focus();
  release();
  await expect(page.getByRole("dialog").getByRole("button", { name: "Create a key" })).toBeVisible();

  const later = await holdCode(page);
  await page.goto("/");
  await page.getByRole("main").getByRole("button", { name: "Connect wallet" }).press("Enter");
  await page.getByRole("link", { name: "Explore" }).first().click();
  later();
  await expect(page.getByRole("heading", { name: "Latest transfers" })).toBeVisible();
  await page.getByRole("link", { name: "Pay" }).first().click();
  await expect(page.getByRole("main").getByRole("button", { name: "Connect wallet" })).toBeVisible();
  await expect(page.getByRole("dialog")).toHaveCount(0);
});

test("a page whose code cannot be loaded says so, and keeps its link", async ({ page }) => {
  await page.route(/\/page-.*\.js$/, (route) => route.abort());
  const link = "/pay#to=0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
  await page.goto(link);
  await expect(page.getByRole("heading", { name: "This page has crashed" })).toBeVisible();
  await expect(page.getByRole("alert")).toContainText("Your orders are safe");
  await page.unroute(/\/page-.*\.js$/);
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByRole("heading", { name: "This page has crashed" })).toHaveCount(0);
  expect(page.url()).toContain(link);
});
