/** The owner's page: invoices, refunds, payouts, exports. It asks the service's API with the token that its reader types. */

const element = (id) => document.getElementById(id);
const ETHER = `0x${"0".repeat(40)}`;
const PAGE = 25;
const REFRESH_MS = 5_000;

let token = sessionStorage.getItem("token") ?? "";
let account = "";
/** The id of the last invoice shown, from which older ones follow; null if there are none. */
let oldest = null;
/** The reference of the last list of refunds shown. */
let lastList = null;
/** The reference of the last payout shown. */
let lastPayout = null;
/** The web wallet's address, as invoices name it. */
let wallet = null;
/** Symbols and decimals, by the asset's address. */
const assets = new Map();

/** An element with properties and children; text is never read as HTML. */
function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

/** An answer of the service. Throws an error with what the problem says. */
async function ask(path, body) {
  const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { "content-type": "application/json" }) };
  const request = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const answer = await fetch(path, request);
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  const error = new Error([problem.detail ?? `status ${answer.status}`, problem.action].filter(Boolean).join(". "));
  throw Object.assign(error, { status: answer.status });
}

const json = async (path, body) => (await ask(path, body)).json();

/** Whole units, exact; a token's smallest unit with its address while the service does not know its decimals. */
function money(units, asset) {
  const known = assets.get(asset);
  return known === undefined ? `${units} of ${asset}` : `${format(units, known.decimals)} ${nameOf(asset)}`;
}

/** Anybody can choose a token's symbol: two that have the same are told apart by their addresses. */
function nameOf(asset) {
  const { symbol } = assets.get(asset);
  const isAlone = [...assets.values()].filter((one) => one.symbol === symbol).length === 1;
  return isAlone ? symbol : `${symbol} (${asset})`;
}

function format(units, decimals) {
  const digits = units.padStart(decimals + 1, "0");
  const fraction = decimals === 0 ? "" : digits.slice(-decimals).replace(/0+$/, "");
  return digits.slice(0, digits.length - decimals) + (fraction === "" ? "" : `.${fraction}`);
}

/** The smallest unit of an asset. Throws if the text is not such an amount. */
function parse(text, asset) {
  const { decimals, symbol } = assets.get(asset) ?? { decimals: 0, symbol: "the token's smallest unit" };
  const parts = /^(\d{1,39})(?:\.(\d+))?$/.exec(text.trim());
  const fraction = (parts?.[2] ?? "").replace(/0+$/, "");
  if (parts === null || fraction.length > decimals) {
    throw new Error(`The amount is not a number of ${symbol} with at most ${decimals} decimals, such as 12.`);
  }
  return BigInt(parts[1] + fraction.padEnd(decimals, "0")).toString();
}

const time = (ms) => new Date(ms).toLocaleString();

/** Runs work and shows what fails; a wrong token asks for another one. */
async function run(work) {
  element("error").hidden = true;
  try {
    await work();
  } catch (error) {
    if (error.status === 401) return leave("This is not the token of this service.");
    element("error").textContent = error.message;
    element("error").hidden = false;
  }
}

function leave(why = "") {
  token = "";
  sessionStorage.removeItem("token");
  for (const id of ["office", "leave"]) element(id).hidden = true;
  element("enter").hidden = false;
  element("status").textContent = "";
  element("error").textContent = why;
  element("error").hidden = why === "";
  element("token").focus();
}

/** ETH, and the tokens that the service knows. What is chosen stays. */
async function learnAssets() {
  for (const { asset, ...known } of (await json("/v1/assets")).assets) assets.set(asset, known);
  for (const select of document.querySelectorAll("select.assets")) {
    const chosen = select.value === "" ? ETHER : select.value;
    if (select.options.length !== assets.size) {
      select.replaceChildren(...[...assets.keys()].map((asset) => make("option", { value: asset }, nameOf(asset))));
      select.value = chosen;
    }
  }
}

async function showStatus() {
  const [status] = await Promise.all([json("/v1/status"), learnAssets()]);
  account = status.account;
  const parts = [`${status.invoicesOpen} open`, `${status.unmatchedPayments} payments without an invoice`];
  if (status.webhooksWaiting > 0) parts.push(`${status.webhooksWaiting} webhooks waiting, ${status.webhooksFailing} failing`);
  const seen = status.lookedAtMs === 0 ? "no complete scan yet" : `scanned ${time(status.lookedAtMs)}`;
  element("status").textContent = `${account}: ${parts.join(", ")}; ${seen}`;
}

function invoiceRow(invoice) {
  const { id, reference, state, amount, received, asset, createdAtMs, expiresAt } = invoice;
  const open = make("button", { type: "button", onclick: () => run(() => showInvoice(id)) }, reference);
  const cells = [open, make("span", { className: state }, state.replace("_", " ")), money(amount, asset), money(received, asset)];
  const row = make("tr", {}, ...cells.map((cell, i) => make("td", { className: i > 1 ? "n" : "" }, cell)));
  row.append(make("td", {}, time(createdAtMs)), make("td", {}, time(expiresAt * 1_000)));
  return row;
}

/** The newest invoices, or those before the oldest shown. */
async function showInvoices(isMore = false) {
  const state = element("state").value;
  const find = element("find").value.trim();
  const query = new URLSearchParams({ newest: "true", limit: String(PAGE), ...(state === "" ? {} : { state }) });
  if (isMore) query.set("after", oldest);
  const page = find === "" ? await json(`/v1/invoices?${query}`) : { invoices: await found(find), next: null };
  oldest = page.next;
  if (!isMore) element("invoices").replaceChildren();
  element("invoices").append(...page.invoices.map(invoiceRow));
  element("older").hidden = oldest === null;
  element("none").hidden = element("invoices").childElementCount > 0;
  wallet ??= page.invoices.find(({ webLink }) => webLink !== null)?.webLink ?? null;
}

/** By the shop's reference, or by id. */
async function found(text) {
  const { invoices } = await json(`/v1/invoices?${new URLSearchParams({ reference: text })}`);
  if (invoices.length > 0 || !text.startsWith("inv_")) return invoices;
  return [await json(`/v1/invoices/${encodeURIComponent(text)}`)];
}

/** A page of the web wallet, without the payment link of the invoice that named it. */
function walletLink(path, text) {
  return make("a", { href: new URL(path, wallet).href, target: "_blank", rel: "noopener" }, text);
}

function facts(entries) {
  return make("dl", {}, ...entries.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function table(label, columns, rows) {
  const head = make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell))));
  const made = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
  const scroll = make("div", { className: "scroll", tabIndex: 0, role: "group" }, made);
  scroll.setAttribute("aria-label", label);
  return scroll;
}

function present(id, ...children) {
  element(id).replaceChildren(...children);
  element(id).hidden = false;
  element(id).focus();
}

async function showInvoice(id) {
  const invoice = await json(`/v1/invoices/${encodeURIComponent(id)}`);
  const { reference, state, asset, payments, webhooks } = invoice;
  const copy = make("button", { type: "button", className: "quiet", onclick: () => run(() => navigator.clipboard.writeText(invoice.link)) }, "Copy the payment link");
  const received = payments.map(({ sender, sequence, amount, receivedAtMs, late }) => [
    make("code", {}, sender), `#${sequence}`, money(amount, asset), time(receivedAtMs), late ? "no" : "yes",
  ]);
  const sent = (webhooks ?? []).map(({ type, delivery, attempts, lastError }) => [type, delivery.replace("_", " "), String(attempts), lastError ?? ""]);
  present(
    "invoice",
    make("h3", {}, reference),
    facts([
      ["State", state.replace("_", " ")],
      ["Id", invoice.id],
      ["Amount", money(invoice.amount, asset)],
      ["Received", money(invoice.received, asset)],
      ["Description", invoice.description],
      ["Memo", invoice.memoText],
      ["Payment link", invoice.link],
      ["Checkout page", invoice.checkoutUrl && make("a", { href: invoice.checkoutUrl, target: "_blank", rel: "noopener" }, invoice.checkoutUrl)],
    ]),
    make("p", {}, copy),
    ...(received.length === 0 ? [] : [table("Payments", ["From", "Order", "Amount", "Received", "In time"], received), refundForm(invoice)]),
    ...(sent.length === 0 ? [] : [table("Webhooks", ["Webhook", "State", "Attempts", "Last error"], sent)]),
  );
}

/** Prepares a refund of one invoice: what is due, or an amount. */
function refundForm({ id, reference, asset }) {
  const amount = make("input", { id: "refund-amount", inputMode: "decimal", placeholder: "what is due" });
  const unit = assets.has(asset) ? nameOf(asset) : "the token's smallest unit";
  const label = make("label", { htmlFor: "refund-amount" }, `Refund in ${unit}`);
  const submit = (event) => {
    event.preventDefault();
    const text = amount.value.trim();
    void run(async () => {
      const units = text === "" ? {} : { amount: parse(text, asset) };
      await prepare({ reference: `${reference} ${new Date().toISOString()}`.slice(-128), invoices: [{ id, ...units }] });
    });
  };
  const form = make("form", { className: "row", onsubmit: submit }, make("div", {}, label, amount), make("button", { type: "submit" }, "Prepare the refund"));
  form.setAttribute("aria-label", "Refund");
  return form;
}

async function prepare(request) {
  const list = await json("/v1/refunds", request);
  await showLists();
  showRefunds(list);
}

/** Lists of refunds, oldest first as the service has them. */
async function showLists(isMore = false) {
  const query = isMore ? `?${new URLSearchParams({ after: lastList })}` : "";
  const { lists, next } = await json(`/v1/refunds${query}`);
  lastList = next;
  const rows = lists.map(({ reference, createdAtMs, refunds, paid }) => {
    const open = make("button", { type: "button", onclick: () => run(async () => showRefunds(await json(`/v1/refunds/${encodeURIComponent(reference)}`))) }, reference);
    return make("tr", {}, make("td", {}, open), make("td", {}, time(createdAtMs)), make("td", { className: "n" }, String(refunds)), make("td", { className: "n" }, String(paid)));
  });
  if (!isMore) element("lists").replaceChildren();
  element("lists").append(...rows);
  element("more-lists").hidden = next === null;
}

function showRefunds({ reference, refunds }) {
  const rows = refunds.map(({ recipient, amount, asset, memo, paid }) => [
    make("code", {}, recipient), money(amount, asset), memo, paid === null ? "not paid yet" : `paid by order #${paid.sequence}`,
  ]);
  const areKnown = refunds.every(({ asset }) => assets.has(asset));
  const save = make("button", { type: "button", onclick: () => saveFile(`refunds-${reference}.csv`, refundTable(reference, refunds)) }, "Save the list for the wallet");
  const command = make("p", {}, "The list has tokens whose decimals only the command can learn: ", make("code", {}, `fastpay-merchant refunds csv ${JSON.stringify(reference)}`));
  const pay = make("p", {}, "Then pay it: ", wallet === null ? make("code", {}, "fastpay pay --csv FILE") : walletLink("/pay/list", "Pay a list in the web wallet"));
  present("refund", make("h3", {}, reference), table("Refunds", ["To", "Amount", "Memo", "State"], rows), areKnown ? make("p", {}, save) : command, pay);
}

/** The same bytes as `fastpay-merchant refunds csv` prints: wallets pay one file once. */
function refundTable(reference, refunds) {
  const lines = refunds.map(({ recipient, amount, asset, memo }) => `${recipient},${format(amount, assets.get(asset).decimals)},${asset},${memo}\n`);
  return `# refunds ${reference} from ${account}: fastpay pay --csv FILE\nrecipient,amount,asset,memo\n${lines.join("")}`;
}

/** Payouts, the newest first. */
async function showPayouts(isMore = false) {
  const query = isMore ? `?${new URLSearchParams({ after: lastPayout })}` : "";
  const { payouts, next } = await json(`/v1/payouts${query}`);
  lastPayout = next;
  const rows = payouts.map((payout) => {
    const { reference, createdAtMs, state, amount, asset, recipient } = payout;
    const open = make("button", { type: "button", onclick: () => run(async () => showPayout(await json(`/v1/payouts/${encodeURIComponent(reference)}`))) }, reference);
    const cells = [open, time(createdAtMs), state, money(amount, asset), make("code", {}, recipient)];
    return make("tr", {}, ...cells.map((cell, i) => make("td", { className: i === 3 ? "n" : "" }, cell)));
  });
  if (!isMore) element("payouts").replaceChildren();
  element("payouts").append(...rows);
  element("more-payouts").hidden = next === null;
}

function showPayout({ reference, amount, asset, fee, recipient, memo, state, link, order }) {
  const sign = link === null ? undefined : make("a", { href: link, target: "_blank", rel: "noopener" }, "Sign it in the web wallet");
  const decimals = assets.get(asset)?.decimals;
  const words = decimals === undefined ? "" : `fastpay redeem ${format(amount, decimals)} --to ${recipient} --asset ${asset} --fee ${format(fee, decimals)} --memo ${memo}`;
  const ways = state === "prepared" ? [...(sign === undefined ? [] : [make("p", {}, sign)]), make("p", {}, "In a terminal: ", make("code", {}, words))] : [];
  present(
    "payout",
    make("h3", {}, reference),
    facts([
      ["State", state],
      ["Amount", money(amount, asset)],
      ["Fee for the relayer", money(fee, asset)],
      ["Paid out", money((BigInt(amount) - BigInt(fee)).toString(), asset)],
      ["To", recipient],
      ["Memo", memo],
      ["Order", order === null ? "" : `#${order.sequence}, ${order.digest}`],
    ]),
    ...ways,
  );
}

function saveFile(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  make("a", { href: url, download: name.replace(/[^\w.-]+/g, "-") }).click();
  URL.revokeObjectURL(url);
}

/** All parts of the export, one after the other. */
async function exportAll() {
  let text = "";
  for (let path = "/v1/export.csv"; path !== undefined; ) {
    const answer = await ask(path);
    text += await answer.text();
    path = /<([^>]+)>; rel="next"/.exec(answer.headers.get("link") ?? "")?.[1];
  }
  saveFile("invoices.csv", text);
}

async function enter() {
  await showStatus();
  await Promise.all([showInvoices(), showLists(), showPayouts()]);
  element("enter").hidden = true;
  for (const id of ["office", "leave"]) element(id).hidden = false;
}

const on = (id, event, work) => {
  element(id).addEventListener(event, (happened) => {
    happened.preventDefault();
    void run(work);
  });
};
on("enter", "submit", async () => {
  token = element("token").value.trim();
  await enter();
  sessionStorage.setItem("token", token);
  element("token").value = "";
});
on("search", "submit", () => showInvoices());
on("state", "change", () => showInvoices());
on("older", "click", () => showInvoices(true));
on("more-lists", "click", () => showLists(true));
on("more-payouts", "click", () => showPayouts(true));
on("export", "click", exportAll);
on("create", "submit", async () => {
  const expiresIn = Number(element("minutes").value) * 60;
  const asset = element("asset").value;
  const description = element("description").value.trim();
  const asked = { reference: element("reference").value, asset, amount: parse(element("amount").value, asset), expiresIn };
  const { id } = await json("/v1/invoices", { ...asked, ...(description === "" ? {} : { description }) });
  element("create").reset();
  await showInvoices();
  await showInvoice(id);
});
on("prepare", "submit", async () => {
  await prepare({ reference: element("list").value, due: element("due").checked, unmatched: element("unmatched").checked });
  element("list").value = "";
});
on("prepare-payout", "submit", async () => {
  const [reference, amount, asset, recipient, fee] = ["reference", "amount", "asset", "recipient", "fee"].map((name) => element(`payout-${name}`).value.trim());
  const asked = { reference, asset, amount: parse(amount, asset), recipient };
  const payout = await json("/v1/payouts", { ...asked, ...(fee === "" ? {} : { fee: parse(fee, asset) }) });
  element("prepare-payout").reset();
  await showPayouts();
  showPayout(payout);
});
element("leave").addEventListener("click", () => leave());

// Refreshed while nothing is searched for and no older page is open, so that no row moves under the reader.
setInterval(() => {
  if (element("office").hidden || document.hidden) return;
  void run(async () => {
    await showStatus();
    if (element("invoices").childElementCount <= PAGE && element("find").value === "") await showInvoices();
    if (element("payouts").childElementCount <= PAGE) await showPayouts();
  });
}, REFRESH_MS);

if (token === "") leave();
else void run(enter);
