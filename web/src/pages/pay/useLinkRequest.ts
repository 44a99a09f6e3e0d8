import { checkExpiry, FastPayError, isPaymentLink, parsePaymentLink, type PaymentLink } from "@fastpay/sdk";
import { useCallback, useEffect, useRef, useState } from "react";
import { useLocation, useNavigate } from "react-router";

import { useNetwork } from "../../network/NetworkProvider";

/** The request of a link, or the reason why it cannot be used. */
export interface LinkRequest {
  readonly request: PaymentLink | undefined;
  readonly error: unknown;
  /** Shows the link that was opened while the page was in use; undefined if there is none. */
  readonly showOpened: (() => void) | undefined;
  /**
   * Parses a text as a link. If `isLink` is false, returns false for a text that does not claim to be a link; otherwise
   * such a text is an error.
   */
  readonly read: (text: string, isLink?: boolean) => boolean;
  readonly clear: () => void;
}

/**
 * The payment link after the `#` when the page was opened, or one that the user enters. A link that arrives later is
 * not used until the user shows it, because the page that opened this window could change its address at any moment,
 * even during a click that pays.
 */
export function useLinkRequest(): LinkRequest {
  const { client } = useNetwork();
  const { hash } = useLocation();
  const navigate = useNavigate();
  const [state, setState] = useState<{ request?: PaymentLink; error?: unknown }>({});
  const [opened, setOpened] = useState<string>();
  const first = useRef<string | undefined>(hash);

  const read = useCallback(
    (text: string, isLink = true) => {
      if (!isLink && !isPaymentLink(text)) return false;
      try {
        const request = parsePaymentLink(text);
        checkDeployment(request, client.domain);
        checkExpiry(request.expires);
        setState({ request });
      } catch (error) {
        setState({ error });
      }
      return true;
    },
    [client],
  );
  useEffect(() => {
    const isFirst = hash === first.current;
    if (!isFirst) first.current = undefined;
    if (hash.length <= 1) return;
    const text = decodeHash(hash.slice(1));
    if (isFirst) read(text);
    else setOpened(text);
    // Remove the link from the address, so that a reload does not request the same payment again.
    void navigate({ hash: "" }, { replace: true });
  }, [hash, read, navigate]);
  const clear = useCallback(() => setState({}), []);
  const show = (text: string): void => {
    setOpened(undefined);
    read(text);
  };
  return { request: state.request, error: state.error, showOpened: opened === undefined ? undefined : () => show(opened), read, clear };
}

/** Decodes a fragment whose `:` was escaped. Browsers leave fragments as they are, except for a few characters. */
function decodeHash(text: string): string {
  try {
    return text.startsWith("fastpay%3A") ? decodeURIComponent(text) : text;
  } catch {
    // Return the text as it is: the parser refuses it with a reason.
    return text;
  }
}

function checkDeployment({ domain }: PaymentLink, own: PaymentLink["domain"]): void {
  if (domain.chainId === own.chainId && domain.contract === own.contract.toLowerCase()) return;
  const message = `this link is for contract ${domain.contract} on chain ${domain.chainId}, and this page is for ${own.contract} on chain ${own.chainId}`;
  throw new FastPayError("invalid-link", message, "open the link on a page of that deployment, or ask for another link");
}
