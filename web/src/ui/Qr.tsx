import { encodeQR } from "qr";
import { useMemo, type JSX } from "react";

/** A QR code, dark on light in every colour scheme, as cameras expect it. */
export function QrCode({ text, label }: { text: string; label: string }): JSX.Element {
  const source = useMemo(() => {
    const svg = encodeQR(text, "svg", { ecc: "medium", border: 4 });
    return `data:image/svg+xml,${encodeURIComponent(svg)}`;
  }, [text]);
  return (
    <img
      src={source}
      alt={label}
      width={264}
      height={264}
      style={{ background: "white", borderRadius: 12, maxWidth: "100%" }}
    />
  );
}
