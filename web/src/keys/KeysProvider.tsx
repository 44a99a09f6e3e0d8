import { decryptKeyFile, encryptKeyFile, FastPayError, readKeyFile, sealedSigner, type AccountId, type KeyFile, type Signer } from "@fastpay/sdk";
import { createContext, lazy, Suspense, useCallback, useContext, useEffect, useMemo, useRef, useState, type JSX, type ReactNode } from "react";

import { forgetKey, onStoredElsewhere, storedKeys, storeKey } from "./stored";
import type { Subject } from "./UnlockDialog";

const UnlockDialog = lazy(() => import("./UnlockDialog"));

/** The Ed25519 keys of this browser. */
export interface Keys {
  readonly files: readonly KeyFile[];
  /** Creates a key and stores it encrypted. Throws `storage`, or `wallet-failed` if the browser cannot sign with it. */
  readonly make: (passphrase: string) => Promise<KeyFile>;
  /** Stores a key from a file. Throws `invalid-key-file`, `wrong-passphrase`, or like `make`. */
  readonly add: (text: string, passphrase: string) => Promise<KeyFile>;
  /** Deletes a key from this browser. */
  readonly forget: (account: AccountId) => void;
  /** A signer for an account. It asks for the passphrase if the key is locked. */
  readonly signerOf: (account: AccountId) => Signer;
  readonly isUnlocked: (account: AccountId) => boolean;
  readonly lock: (account: AccountId) => void;
}

/** A key is locked after this time without a signature, in milliseconds. */
const IDLE_MS = 15 * 60_000;

interface Question {
  readonly file: KeyFile;
  readonly subject: Subject;
  readonly answer: (signer: Signer) => void;
  readonly decline: () => void;
}

const KeysContext = createContext<Keys | undefined>(undefined);

/** The Ed25519 keys of this browser. */
export function useKeys(): Keys {
  const keys = useContext(KeysContext);
  if (keys === undefined) throw new Error("useKeys outside of KeysProvider");
  return keys;
}

/**
 * Provides the browser keys. A secret is unencrypted only while it is created or unlocked. Then WebCrypto keeps it as a
 * key that signs and cannot be exported. A reload locks all keys.
 */
export function KeysProvider({ children }: { children: ReactNode }): JSX.Element {
  const [files, setFiles] = useState(storedKeys);
  const [unlocked, setUnlocked] = useState<ReadonlyMap<AccountId, Signer>>(new Map());
  const [question, setQuestion] = useState<Question>();
  // A signer that was returned earlier must use the current files and unlocked keys.
  const current = useRef({ files, unlocked });
  current.current = { files, unlocked };
  useEffect(() => onStoredElsewhere(() => setFiles(storedKeys())), []);

  const timers = useRef(new Map<AccountId, ReturnType<typeof setTimeout>>());
  const lock = useCallback((account: AccountId) => {
    clearTimeout(timers.current.get(account));
    setUnlocked((before) => new Map([...before].filter(([one]) => one !== account)));
  }, []);

  /** Lets a key sign, until `IDLE_MS` have passed without a signature. */
  const unlock = useCallback(
    (signer: Signer) => {
      const { account } = signer;
      clearTimeout(timers.current.get(account));
      timers.current.set(account, setTimeout(() => lock(account), IDLE_MS));
      setUnlocked((before) => new Map(before).set(account, signer));
    },
    [lock],
  );

  const keep = useCallback(
    async (file: KeyFile, secret: Uint8Array) => {
      const signer = await sealedSigner(secret);
      storeKey(file);
      setFiles(storedKeys());
      unlock(signer);
      return file;
    },
    [unlock],
  );

  const make = useCallback(
    async (passphrase: string) => {
      const secret = crypto.getRandomValues(new Uint8Array(32));
      return keep(await encryptKeyFile(secret, passphrase), secret);
    },
    [keep],
  );

  const add = useCallback(
    async (text: string, passphrase: string) => keep(readKeyFile(text), await decryptKeyFile(text, passphrase)),
    [keep],
  );

  const forget = useCallback(
    (account: AccountId) => {
      lock(account);
      forgetKey(account);
      setFiles(storedKeys());
    },
    [lock],
  );

  const ask = useCallback((account: AccountId, subject: Subject): Promise<Signer> => {
    const file = current.current.files.find((one) => one.account === account);
    return new Promise((answer, reject) => {
      const decline = (): void => reject(new FastPayError("signature-rejected", "the key was not unlocked", "nothing was signed; try again"));
      if (file === undefined) return decline();
      setQuestion({ file, subject, answer, decline });
    });
  }, []);

  const signerOf = useCallback(
    (account: AccountId): Signer => {
      const unlocked = async (subject: Subject): Promise<Signer> => {
        const signer = current.current.unlocked.get(account) ?? (await ask(account, subject));
        unlock(signer);
        return signer;
      };
      return {
        account,
        authorize: async (domain, transfer) => (await unlocked(transfer)).authorize(domain, transfer),
        authorizeUnlock: async (domain, sequence) => (await unlocked({ type: "unlock", sequence })).authorizeUnlock(domain, sequence),
      };
    },
    [ask, unlock],
  );

  const isUnlocked = useCallback((account: AccountId) => unlocked.has(account), [unlocked]);
  const value = useMemo(
    () => ({ files, make, add, forget, signerOf, isUnlocked, lock }),
    [files, make, add, forget, signerOf, isUnlocked, lock],
  );
  return (
    <KeysContext value={value}>
      {children}
      {question !== undefined && (
        <Suspense>
          <UnlockDialog
            file={question.file}
            subject={question.subject}
            onUnlocked={(signer) => {
              setQuestion(undefined);
              question.answer(signer);
            }}
            onClose={() => {
              setQuestion(undefined);
              question.decline();
            }}
          />
        </Suspense>
      )}
    </KeysContext>
  );
}
