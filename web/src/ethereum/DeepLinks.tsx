import { Button, Stack, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import type { JSX } from "react";

/** Links that open a page in a wallet app's own browser, as each app documents them. */
const APPS: readonly { readonly name: string; readonly link: (page: URL) => string }[] = [
  { name: "MetaMask", link: ({ host, pathname }) => `https://metamask.app.link/dapp/${host}${pathname}` },
  { name: "Coinbase Wallet", link: ({ href }) => `https://go.cb-w.com/dapp?cb_url=${encodeURIComponent(href)}` },
  { name: "Trust Wallet", link: ({ href }) => `https://link.trustwallet.com/open_url?coin_id=60&url=${encodeURIComponent(href)}` },
];

/**
 * On a phone: links that open this page in a wallet's browser, where the wallet is found. The part after the `#` is left
 * out, because the app's link service would see a payment link.
 */
export function DeepLinks(): JSX.Element | null {
  const isTouch = useMediaQuery("(pointer: coarse)");
  if (isTouch !== true) return null;
  const page = new URL(window.location.pathname, window.location.origin);
  return (
    <Stack gap="xs">
      <Text size="sm">Open this page in your wallet:</Text>
      {APPS.map(({ name, link }) => (
        <Button key={name} component="a" href={link(page)} variant="default">
          {name}
        </Button>
      ))}
    </Stack>
  );
}
