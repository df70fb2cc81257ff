// TLS of the ports for clients, with the files of `tls.cert` and `tls.key`, which are read again when they change.
// Source: ADR 209.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { Logger } from 'pino';
import { readPemFile } from '../../config/read-file.ts';
import { codeOf, fileFault, OperatorError, reasonOf } from '../../domain/errors/errors.ts';
import { type Clock, systemClock } from '../../domain/time/clock.ts';
import { type CertificateEnd, certificateEndOf, warnOfEnd } from '../../net/tls/certificate-end.ts';
import { type Renewed, readRenewed } from '../../net/tls/renewed.ts';

/** The options of secure contexts for clients. A change means that new connections need others. */
export type PublicTls = Renewed<
  Readonly<Record<'cert' | 'key', string>> & { readonly minVersion: 'TLSv1.2' }
>;

/** Renewed certificates are in use after this time, in ms. A watch would miss the links that Kubernetes replaces. */
const READ_AGAIN_MS = 10_000;
/** Permission bits of a key file that are always refused: write for the group, read and write for others. */
const OPEN_TO_OTHERS = 0o026;
/** Refused, too, unless the gateway runs as root: read for the group. */
const OPEN_TO_GROUP = 0o040;

/** Throws OperatorError for files that cannot be used. */
export async function openPublicTls(
  { cert, key }: { readonly cert: string; readonly key: string },
  log: Pick<Logger, 'warn' | 'info'>,
  { clock = systemClock }: { readonly clock?: Clock } = {},
): Promise<PublicTls> {
  const onWarning = (reason: string) => log.warn(`${reason}; the previous certificate stays in use`);
  const isSame = (a: Pair, b: Pair) => a.cert === b.cert && a.key === b.key;
  const pair = await readRenewed(() => readPair(cert, key), {
    clock,
    everyMs: READ_AGAIN_MS,
    isSame,
    onWarning,
  });
  pair.onChange(() => log.info(`tls: the certificate in ${cert} is in use now`));
  const endWatch = warnOfEnd('tls.cert', pair, clock, (line) => log.warn(line));
  return {
    present: () => ({ ...pair.present(), minVersion: 'TLSv1.2' }),
    onChange: pair.onChange,
    close: () => {
      endWatch();
      pair.close();
    },
  };
}

/** Resolves with the end of the certificate in these files. Throws like `openPublicTls`. */
export async function endOfCertificate(files: Pair): Promise<CertificateEnd> {
  const { cert } = await readPair(files.cert, files.key);
  return certificateEndOf(cert, systemClock.wall());
}

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** Throws OperatorError of one line. */
async function readPair(certPath: string, keyPath: string): Promise<Pair> {
  const [cert, key] = await Promise.all([textOf('tls.cert', certPath), textOf('tls.key', keyPath)]);
  try {
    // Node accepts text that is none of them, and an empty key, and serves nothing.
    new X509Certificate(cert);
    createPrivateKey(key);
    createSecureContext({ cert, key });
  } catch (cause) {
    if (isEncrypted(key))
      throw new OperatorError(
        `tls.key: ${keyPath} has a passphrase, which the gateway cannot enter: ` +
          `write it without one, as by "openssl pkey -in ${keyPath} -out new.key"`,
      );
    throw new OperatorError(
      `tls: ${certPath} and ${keyPath} cannot be used as certificate and key (${reasonOf(cause)})`,
      { cause },
    );
  }
  return { cert, key };
}

/** True for an encrypted key: PKCS#8 names it in its first line, the older form in a header. */
function isEncrypted(key: string): boolean {
  return /^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(key);
}

async function textOf(setting: 'tls.cert' | 'tls.key', path: string): Promise<string> {
  try {
    return await readPemFile(path, setting === 'tls.key' ? requirePrivate : undefined);
  } catch (cause) {
    const reason = codeOf(cause) === undefined ? reasonOf(cause) : fileFault(cause);
    throw new OperatorError(`${setting}: ${path} cannot be used: ${reason}`, { cause });
  }
}

/**
 * Requires that others cannot read a key file. A group may read a file that root gives it: `ssl-cert` of Debian, and the
 * `fsGroup` of a pod. Throws OperatorError.
 */
function requirePrivate({ mode, uid }: { readonly mode: number; readonly uid: number }): void {
  if (process.platform === 'win32') return;
  const me = process.getuid?.();
  if (uid !== me && uid !== 0) throw new OperatorError('it belongs to another user, who knows it');
  const refused = uid === 0 ? OPEN_TO_OTHERS : OPEN_TO_OTHERS | OPEN_TO_GROUP;
  if ((mode & refused) !== 0)
    throw new OperatorError('other users can read or change it; run "chmod 600" on it');
}
