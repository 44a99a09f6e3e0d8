/** The shop's page: a shelf with a basket, and an order whose state is updated without a reload. */

const element = (id) => document.getElementById(id);
const POLL_MS = 500;
const COPIED_MS = 2_000;

/** For each state of an invoice: the text for the buyer, its style, and whether the buyer can still pay. */
const STATES = {
  open: [() => "Waiting for your payment …", "", true],
  underpaid: [({ received, missing }) => `${received} ETH has come. Please pay the other ${missing} ETH.`, "warn", true],
  paid: [() => "✓ Paid. Thank you! It is on its way.", "good", false],
  overpaid: [({ excess }) => `✓ Paid, and ${excess} ETH too much: we send that back.`, "good", false],
  paid_twice: [({ excess }) => `✓ Paid twice. We send ${excess} ETH back.`, "good", false],
  late: [() => "Your payment came after the order had ended. We will write to you.", "warn", false],
  expired: [() => "This order has expired. Nothing was paid.", "warn", false],
};

const basket = new Map();
let goods = [];

function showBasket() {
  const count = [...basket.values()].reduce((sum, number) => sum + number, 0);
  element("count").textContent = count === 0 ? "Your basket is empty" : `${count} in your basket`;
  // Prices are whole thousandths of an ETH. The shop's server computes the invoice's amount.
  const total = goods.reduce((sum, { id, thousandths }) => sum + thousandths * (basket.get(id) ?? 0), 0);
  element("total").textContent = count === 0 ? "" : `${total / 1_000} ETH`;
  element("basket").querySelector("button").disabled = count === 0;
}

function stepper({ id, name }) {
  const box = document.createElement("div");
  box.className = "stepper";
  const output = document.createElement("output");
  output.setAttribute("aria-label", `${name} in the basket`);
  const change = (sign, words, by) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = sign;
    button.setAttribute("aria-label", `${words} ${name}`);
    button.onclick = () => {
      basket.set(id, Math.min(9, Math.max(0, (basket.get(id) ?? 0) + by)));
      output.value = String(basket.get(id));
      showBasket();
    };
    return button;
  };
  output.value = "0";
  box.append(change("−", "Less", -1), output, change("+", "More", 1));
  return box;
}

function showGoods() {
  const rows = goods.map((good) => {
    const row = document.createElement("li");
    const what = document.createElement("div");
    what.className = "what";
    const [name, price] = ["b", "span"].map((kind) => document.createElement(kind));
    [name.textContent, price.textContent] = [good.name, `${good.thousandths / 1_000} ETH`];
    what.append(name, price);
    row.append(what, stepper(good));
    return row;
  });
  element("goods").replaceChildren(...rows);
}

function minutes(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** The displayed link. The QR code is redrawn only if the link changes, because it must not flicker during a scan. */
let shownLink;
function showOrder(order) {
  const [words, style, isPayable] = STATES[order.state] ?? [() => order.state, "", false];
  element("shelf").hidden = true;
  element("order").hidden = false;
  element("amount").textContent = `${order.amount} ETH`;
  element("bill").textContent = order.bill;
  // Screen readers announce each change of a status, so change it only if the text differs.
  if (element("state").textContent !== words(order)) element("state").textContent = words(order);
  element("state").className = style;
  element("payment").hidden = !isPayable;
  element("again").hidden = isPayable;
  element("left").textContent = order.secondsLeft > 0 ? `${minutes(order.secondsLeft)} left to pay` : "The time is over";
  if (order.link === shownLink) return;
  shownLink = order.link;
  element("qr").innerHTML = order.qr;
  element("link").textContent = element("app").href = order.link;
  element("web").hidden = order.webLink === null;
  element("web").href = order.webLink ?? "";
  element("checkout").hidden = order.checkoutUrl === undefined;
  element("checkout").href = order.checkoutUrl ?? "";
}

/** Polls and shows an order until the visitor leaves its page. */
async function follow(id) {
  while (location.hash === `#${id}`) {
    const answer = await fetch(`/orders/${encodeURIComponent(id)}`).catch(() => undefined);
    if (answer?.status === 404) return leave();
    if (answer?.ok) showOrder(await answer.json());
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

function leave() {
  history.replaceState(null, "", "/");
  location.reload();
}

element("basket").onsubmit = async (event) => {
  event.preventDefault();
  const button = element("basket").querySelector("button");
  button.disabled = true;
  const answer = await fetch("/orders", { method: "POST", body: JSON.stringify(Object.fromEntries(basket)) }).catch(() => undefined);
  button.disabled = false;
  element("trouble").hidden = answer?.ok === true;
  if (answer?.ok) location.hash = (await answer.json()).id;
  else element("trouble").textContent = answer === undefined ? "The shop cannot be reached." : await answer.text();
};
element("again").onclick = leave;
element("copy").onclick = async () => {
  const words = element("copy").textContent;
  await navigator.clipboard.writeText(shownLink);
  element("copy").textContent = "Copied";
  setTimeout(() => (element("copy").textContent = words), COPIED_MS);
};
window.onhashchange = () => follow(location.hash.slice(1));

goods = await (await fetch("/goods")).json();
showGoods();
showBasket();
if (location.hash.length > 1) void follow(location.hash.slice(1));
