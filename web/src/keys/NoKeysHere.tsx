import { Alert, Text } from "@mantine/core";
import { canSealKeys } from "@fastpay/sdk";
import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";

import { IconAlertTriangle } from "../ui/icons";

/** True if this browser can sign with its own keys; undefined until that is known. */
export function useCanKeepKeys(): boolean | undefined {
  return useQuery({ queryKey: ["can-keep-keys"], queryFn: canSealKeys, staleTime: Number.POSITIVE_INFINITY }).data;
}

/** A notice that this browser cannot sign with browser keys, with alternatives. */
export function NoKeysHere(): JSX.Element | null {
  if (useCanKeepKeys() !== false) return null;
  return (
    <Alert role="alert" color="orange" icon={<IconAlertTriangle aria-hidden />} title="This browser cannot sign with a key of its own">
      <Text size="sm">
        Its WebCrypto has no Ed25519, or this page is not served securely. Connect an Ethereum wallet instead, or open this page
        in a newer browser: Chrome or Edge 137, Firefox 130, Safari 17. A key file works there, and with the command line.
      </Text>
    </Alert>
  );
}
