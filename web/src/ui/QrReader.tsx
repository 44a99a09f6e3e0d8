import { Button, FileButton, Group, Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { FastPayError } from "@fastpay/sdk";
import { useEffect, useRef, useState, type JSX } from "react";

import { ErrorAlert } from "./ErrorAlert";
import { IconCamera, IconPhoto } from "./icons";

/** The maximum width and height, in pixels, at which a picture is decoded. No QR code needs more. */
const PIXELS_MAX = 1_600;

/** Reads a QR code by camera or from a picture. The caller validates its text. */
export function QrReader({ onText }: { onText: (text: string) => void }): JSX.Element {
  const [isOpen, { open, close }] = useDisclosure(false);
  const [error, setError] = useState<unknown>();
  const read = async (file: File | null): Promise<void> => {
    if (file === null) return;
    setError(undefined);
    try {
      onText(await readPicture(file));
    } catch (cause) {
      const action = "take the picture again: sharp, straight, and with a white border around the code";
      setError(new FastPayError("invalid-link", "no QR code was found in this picture", action, { cause }));
    }
  };
  return (
    <>
      <Group gap="xs">
        <Button variant="default" size="xs" leftSection={<IconCamera size={16} aria-hidden />} onClick={open}>
          Scan with the camera
        </Button>
        <FileButton accept="image/*" onChange={(file) => void read(file)} inputProps={{ "aria-label": "Picture of a QR code" }}>
          {(props) => (
            <Button {...props} variant="default" size="xs" leftSection={<IconPhoto size={16} aria-hidden />}>
              Read a picture
            </Button>
          )}
        </FileButton>
      </Group>
      <ErrorAlert error={error} />
      <Modal opened={isOpen} onClose={close} title="Point the camera at the QR code" centered>
        <Camera
          onText={(text) => {
            close();
            onText(text);
          }}
        />
      </Modal>
    </>
  );
}

async function readPicture(file: File): Promise<string> {
  // Loaded on demand: the decoder is large, and most visits need none.
  const [{ decodeQR }, picture] = await Promise.all([import("qr/decode.js"), createImageBitmap(file)]);
  const scale = Math.min(1, PIXELS_MAX / Math.max(picture.width, picture.height));
  const [width, height] = [Math.round(picture.width * scale), Math.round(picture.height * scale)];
  const context = new OffscreenCanvas(width, height).getContext("2d");
  if (context === null) throw new Error("this browser cannot read pictures");
  context.drawImage(picture, 0, 0, width, height);
  return decodeQR(context.getImageData(0, 0, width, height), { effort: Number.POSITIVE_INFINITY, timeLimit: 3_000 });
}

function Camera({ onText }: { onText: (text: string) => void }): JSX.Element {
  const video = useRef<HTMLVideoElement>(null);
  const found = useRef(onText);
  const [error, setError] = useState<unknown>();
  found.current = onText;
  useEffect(() => {
    let stop = (): void => undefined;
    let isOver = false;
    const run = async (): Promise<void> => {
      const { frameLoop, QRCanvas, rearCamera } = await import("qr/dom.js");
      if (isOver || video.current === null) return;
      const camera = await rearCamera(video.current);
      const canvas = new QRCanvas();
      const cancel = frameLoop(async () => {
        // Decode whole frames: a code on a bill may be small.
        const text = await camera.readFrame(canvas, true);
        if (typeof text === "string" && !isOver) found.current(text);
      });
      stop = () => {
        cancel();
        camera.stop();
      };
      if (isOver) stop();
    };
    run().catch((cause: unknown) => {
      const action = "allow this page to use the camera, or read a picture";
      setError(new FastPayError("invalid-argument", "the camera cannot be used", action, { cause }));
    });
    return () => {
      isOver = true;
      stop();
    };
  }, []);
  return (
    <Stack>
      <video ref={video} muted playsInline aria-label="Camera" style={{ width: "100%", borderRadius: 8 }} />
      <ErrorAlert error={error} />
      <Text size="sm" c="dimmed">
        Pictures stay on this device.
      </Text>
    </Stack>
  );
}
