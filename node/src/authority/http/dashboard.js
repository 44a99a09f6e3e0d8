// The dashboard of the node that serves it: asks /v1/status, /v1/redemptions/waiting and /metrics, and shows what they say. What comes from there is
// only ever put in as text.
"use strict";

const INTERVAL_MS = 5000;
const byId = (id) => document.getElementById(id);

/** Prometheus text to [{name, labels, value}]. */
function samples(text) {
  const found = [];
  for (const line of text.split("\n")) {
    const parts = /^([a-zA-Z_:]\w*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!parts) continue;
    const labels = {};
    for (const [, key, value] of (parts[2] ?? "").matchAll(/(\w+)="([^"]*)"/g)) labels[key] = value;
    found.push({ name: parts[1], labels, value: Number(parts[3]) });
  }
  return found;
}

function ago(seconds) {
  if (!(seconds > 0)) return "not since the start";
  const age = Math.max(0, Math.round(Date.now() / 1000 - seconds));
  if (age < 120) return `${age} s ago`;
  return age < 7200 ? `${Math.round(age / 60)} min ago` : `${Math.round(age / 3600)} h ago`;
}

const isEther = (asset) => /^0x0+$/.test(asset);

/** Ether with as many digits as it needs, tokens in their smallest unit: their decimals are not known here. */
function amount(units, asset) {
  if (!isEther(asset)) return String(units);
  const [sign, all] = units < 0n ? ["−", -units] : ["", units];
  const fraction = String(all % 10n ** 18n).padStart(18, "0").replace(/0+$/, "");
  return `${sign}${all / 10n ** 18n}${fraction && "."}${fraction}`;
}

/** Cells are text, or [text, class]. The first one heads its row. */
function rows(body, lines) {
  body.replaceChildren(...lines.map((cells) => {
    const row = document.createElement("tr");
    cells.forEach((cell, index) => {
      const [text, style] = Array.isArray(cell) ? cell : [cell, ""];
      const element = document.createElement(index === 0 ? "th" : "td");
      if (index === 0) element.scope = "row";
      element.className = style;
      element.textContent = text;
      row.append(element);
    });
    return row;
  }));
}

function facts(pairs) {
  byId("facts").replaceChildren(...pairs.flatMap(([term, text, style]) => {
    const [name, value] = [document.createElement("dt"), document.createElement("dd")];
    name.textContent = term;
    value.textContent = text;
    value.className = style ?? "";
    return [name, value];
  }));
}

function solvency(status) {
  const sums = new Map();
  for (const totals of status.shards.flatMap((shard) => shard.totals)) {
    const sum = sums.get(totals.asset) ?? { deposited: 0n, accounts: 0n, inFlight: 0n, redeemed: 0n };
    sum.deposited += BigInt(totals.deposited);
    sum.accounts += BigInt(totals.accounts);
    sum.inFlight += BigInt(totals.forwarded) - BigInt(totals.credited);
    sum.redeemed += BigInt(totals.redeemed);
    sums.set(totals.asset, sum);
  }
  return [...sums].map(([asset, { deposited, accounts, inFlight, redeemed }]) => {
    const gap = deposited - accounts - inFlight - redeemed;
    const name = isEther(asset) ? "ETH" : asset;
    // Exact, although shards are asked one after the other: each adds up for itself.
    const verdict = gap === 0n ? ["yes", "good"] : [`differs by ${amount(gap, asset)}`, "bad"];
    return [name, ...[deposited, accounts, inFlight, redeemed].map((sum) => [amount(sum, asset), "n"]), verdict];
  });
}

/** What waits, or the problem that says why that is not known. */
function waiting(answer) {
  const listed = answer.redemptions ?? [];
  const more = Number(answer.beyond ?? 0);
  byId("waiting-caption").textContent = answer.detail ?? (listed.length === 0
    ? `None, as of final block ${answer.block}.`
    : `${listed.length}${more ? ` and ${more} behind them` : ""}, as of final block ${answer.block}; those who have waited longest first.`);
  rows(byId("waiting-rows"), listed.map(({ redemption, since }) => {
    const { sender, sequence, recipient, asset } = redemption;
    const units = [redemption.amount, redemption.fee].map((value) => [amount(BigInt(value), asset), "n"]);
    return [`${sender} #${sequence}`, recipient, ...units, isEther(asset) ? "ETH" : asset, ago(Number(since))];
  }));
}

function show(status, metrics) {
  const one = (name, labels = {}) => metrics.find((sample) => sample.name === name
    && Object.entries(labels).every(([key, value]) => sample.labels[key] === value))?.value;
  const { state, block, reason } = status.follower;
  const behind = (one("fastpay_follower_final_block") ?? 0) - Number(block ?? 0);
  const polled = one("fastpay_follower_polled_timestamp_seconds");
  const announced = one("fastpay_announcements_open");
  const installable = one("fastpay_announcement_installable_timestamp_seconds");
  const healthy = status.votes && !status.restored && state !== "stopped";
  byId("state").textContent = healthy ? "Votes." : [
    !status.votes && "Does not vote in this epoch.",
    status.restored && "Runs on a folder that is marked as an older copy.",
    state === "stopped" && `The follower has stopped: ${reason}`,
  ].filter(Boolean).join(" ");
  byId("state").className = healthy ? "good" : "bad";
  const follower = block == null ? state : `${state}, at block ${block}, ${Math.max(0, behind)} behind the final head, heard ${ago(polled)}`;
  facts([
    ["Authority", status.authority],
    ["Contract", `${status.contract ?? "none"} on chain ${status.chainId}`],
    ["Epoch", status.epoch],
    announced > 0 && ["Announced committees", `${announced}; the first can be installed from ${new Date(installable * 1000).toISOString()} on`, "bad"],
    ["Version", status.version],
    ["Primary", follower, state === "stopped" ? "bad" : ""],
    ["Connections to shards", String(one("fastpay_connections") ?? "unknown")],
    ["Certified checkpoint", one("fastpay_certified_checkpoint_number")
      ? `${one("fastpay_certified_checkpoint_number")}, archived ${ago(one("fastpay_certified_checkpoint_timestamp_seconds"))}` : "none"],
  ].filter(Boolean));
  rows(byId("assets"), solvency(status));
  const members = metrics.filter((sample) => sample.name === "fastpay_peer_vote_timestamp_seconds");
  rows(byId("members"), members.map(({ labels, value }) => {
    const own = labels.authority === status.authority ? " (this one)" : "";
    return [labels.authority + own, [ago(value), value > 0 ? "" : "warn"]];
  }).sort());
  rows(byId("shard-rows"), status.shards.map((shard) => {
    const of = { shard: String(shard.shard) };
    const numbers = [shard.queued, shard.synchronized, shard.redemptions, shard.creditsInFlight,
      String(one("fastpay_journal_bytes", of) ?? "unknown")];
    return [of.shard, ...numbers.map((number) => [number, "n"]), ago(one("fastpay_checkpoint_timestamp_seconds", of))];
  }));
}

/** An answer; one that says no is taken where `refused` does. */
async function ask(path, refused = false) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(INTERVAL_MS) });
  if (!answer.ok && !refused) throw new Error(`${path}: ${answer.status}`);
  return answer;
}

async function refresh() {
  try {
    const [status, metrics] = await Promise.all([ask("/v1/status").then((answer) => answer.json()), ask("/metrics")]);
    show(status, samples(await metrics.text()));
    const nothing = { detail: "This committee has no contract, so nothing is redeemed." };
    waiting(status.contract === null ? nothing : await (await ask("/v1/redemptions/waiting", true)).json());
  } catch (error) {
    byId("state").textContent = `The authority does not answer (${error.message}). What is below is old.`;
    byId("state").className = "bad";
  }
  setTimeout(refresh, INTERVAL_MS);
}

refresh();
