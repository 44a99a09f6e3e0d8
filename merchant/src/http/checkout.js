/** The customer's page of an invoice: what to pay and how, until when, and then the receipt. Text is never read as HTML. */

const element = (id) => document.getElementById(id);
const POLL_MS = 2_000;
const WORDS = {
  open: ["Waiting for the payment", ""],
  underpaid: ["A part is paid; the rest is missing", "warn"],
  paid: ["Paid. Thank you!", "good"],
  overpaid: ["Paid, and more than was due. Ask the shop for the rest.", "warn"],
  paid_twice: ["Paid twice. Ask the shop for a refund.", "warn"],
  late: ["Paid after the end of the invoice. Ask the shop what happens now.", "warn"],
  expired: ["This invoice has expired. Do not pay it any more.", "warn"],
};

/** What the service said last, and how far its clock is ahead of this machine's. */
let shown = null;
let aheadMs = 0;

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Whole units, exact; the smallest unit while the decimals of a token are not known. */
function money(units, { decimals, symbol, asset }) {
  if (decimals === null) return `${units} of the smallest unit of ${asset}`;
  const digits = units.padStart(decimals + 1, "0");
  const fraction = decimals === 0 ? "" : digits.slice(-decimals).replace(/0+$/, "");
  return `${digits.slice(0, digits.length - decimals)}${fraction === "" ? "" : `.${fraction}`} ${symbol}`;
}

/** Only where the service says so, and never a script. */
function lead(link, href) {
  const isFit = href !== null && URL.canParse(href) && ["https:", "http:", "fastpay:"].includes(new URL(href).protocol);
  link.hidden = !isFit;
  if (isFit) link.href = href;
}

function show(invoice) {
  const { shop, reference, description, items, amount, received, state, payment, payments, returnUrl } = invoice;
  const [words, mood] = WORDS[state] ?? [state, ""];
  document.title = `${shop ?? "Invoice"}: ${reference}`;
  element("shop").textContent = shop ?? "";
  element("title").textContent = money(amount, invoice);
  element("description").textContent = description ?? "";
  const isOver = payment === null && (state === "open" || state === "underpaid");
  element("state").textContent = isOver ? `${words}. The time to pay is over.` : words;
  element("state").className = isOver ? "warn" : mood;
  element("items").hidden = items.length === 0;
  const line = ({ name, quantity, amount: of }) =>
    make("tr", {}, make("td", {}, name), make("td", { className: "n" }, String(quantity)), make("td", { className: "n" }, money(of, invoice)));
  element("lines").replaceChildren(...items.map(line));
  const facts = [
    ["Reference", reference],
    ["Amount", money(amount, invoice)],
    ["Received", received === "0" ? "" : money(received, invoice)],
    ["To", invoice.account],
    ["Invoice", invoice.id],
    ["Date", new Date(invoice.createdAtMs).toLocaleString()],
  ];
  const pairs = facts.filter(([, value]) => value !== "");
  element("facts").replaceChildren(...pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  element("pay").hidden = payment === null;
  if (payment !== null) showWays(payment);
  element("payments").hidden = payments.length === 0;
  const paid = ({ sender, amount: of, receivedAtMs }) => make("li", {}, `${money(of, invoice)} from ${sender}, ${new Date(receivedAtMs).toLocaleString()}`);
  element("paid").replaceChildren(...payments.map(paid));
  element("print").hidden = payments.length === 0;
  lead(element("back"), returnUrl);
  element("page").hidden = false;
  tick();
}

function showWays({ link, webLink, qr }) {
  lead(element("web"), webLink);
  element("by-web").hidden = webLink === null;
  lead(element("link"), link);
  // Whatever is in the link, the shell takes it as one word.
  element("command").textContent = `fastpay pay '${link.replaceAll("'", "%27")}'`;
  element("qr").toggleAttribute("hidden", qr === null);
  if (qr === null) return;
  element("qr").setAttribute("viewBox", `0 0 ${qr.size} ${qr.size}`);
  element("qr").firstElementChild.setAttribute("d", qr.path);
}

function tick() {
  if (shown === null || shown.payment === null) return;
  const left = Math.max(0, Math.floor(shown.expiresAt - (Date.now() + aheadMs) / 1_000));
  const [days, hours, minutes, seconds] = [Math.floor(left / 86_400), Math.floor(left / 3_600) % 24, Math.floor(left / 60) % 60, left % 60];
  const clock = [hours, minutes, seconds].map((part) => String(part).padStart(2, "0")).join(":");
  const rest = (BigInt(shown.amount) - BigInt(shown.received)).toString();
  element("left").textContent = `Pay ${money(rest, shown)} within ${days > 0 ? `${days} days and ` : ""}${clock}.`;
}

/** Asks again and again. What cannot be asked now is asked later; what is shown stays. */
async function follow() {
  try {
    const answer = await fetch(`${location.pathname.replace(/\/+$/, "")}/state`);
    if (answer.status === 404) return fail("There is no such invoice. Ask the shop for the address again.");
    const invoice = await answer.json();
    if (!answer.ok) throw new Error(invoice.detail);
    [shown, aheadMs] = [invoice, invoice.nowMs - Date.now()];
    show(invoice);
    element("error").hidden = true;
  } catch {
    fail("The shop's service cannot be reached now. This page tries again.");
  }
  setTimeout(follow, document.hidden ? 5 * POLL_MS : POLL_MS);
}

function fail(text) {
  element("error").textContent = text;
  element("error").hidden = false;
}

element("print").addEventListener("click", () => window.print());
element("copy").addEventListener("click", () => void navigator.clipboard.writeText(element("command").textContent));
setInterval(tick, 1_000);
void follow();
