// TLS of the peer channel with certificates of the operator, which are mutual: both ends have one that the
// authority of the deployment has issued. The files are read again every minute, because certificates are renewed.
// Source: ADR 190.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { checkServerIdentity, createSecureContext } from 'node:tls';
import { readPemFile } from '../../../config/read-file.ts';
import { OperatorError, reasonOf } from '../../../domain/errors/errors.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import { warnOfEnd } from '../../../net/tls/certificate-end.ts';
import { readRenewed } from '../../../net/tls/renewed.ts';
import type { PeerTls } from './peer-tls.ts';

const READ_AGAIN_MS = 60_000;

/** Paths of files in PEM. */
export interface CertificateFiles {
  /** The certificate of this node, then intermediate ones. */
  readonly cert: string;
  readonly key: string;
  /** The authorities that issue the certificates of the nodes. */
  readonly ca: string;
}

export interface PeerCertificates extends PeerTls {
  /** Stops reading the files. */
  close(): void;
}

/**
 * Throws OperatorError for files that cannot be used. `onWarning` gets one line when renewed files cannot be used (the
 * previous ones stay in use), and while the certificate expires.
 */
export async function readCertificates(
  files: CertificateFiles,
  { clock, onWarning }: { readonly clock: Clock; readonly onWarning: (line: string) => void },
): Promise<PeerCertificates> {
  const renewed = await readRenewed(() => read(files), {
    clock,
    everyMs: READ_AGAIN_MS,
    isSame: (a, b) => a.cert === b.cert && a.key === b.key && a.ca === b.ca,
    onWarning: (reason) => onWarning(`${reason}; the previous certificate stays in use`),
  });
  const endWatch = warnOfEnd('cluster.tls.cert', renewed, clock, onWarning);
  return {
    listener: () => ({
      ...renewed.present(),
      minVersion: 'TLSv1.3',
      requestCert: true,
      rejectUnauthorized: true,
    }),
    connection: (host) => ({
      ...renewed.present(),
      minVersion: 'TLSv1.3',
      rejectUnauthorized: true,
      // An address of a pod is not known when its certificate is issued; the authority vouches for it.
      ...(isIP(host) === 0
        ? { servername: host, checkServerIdentity }
        : { servername: '', checkServerIdentity: () => undefined }),
    }),
    mayReset: true,
    onRenewed: renewed.onChange,
    close: () => {
      endWatch();
      renewed.close();
    },
  };
}

async function read(files: CertificateFiles) {
  const [cert, key, ca] = await Promise.all([text('cert'), text('key'), text('ca')]);
  try {
    // Node accepts text that is none of these, and with an empty `ca` it trusts the public authorities.
    for (const each of [cert, ca]) new X509Certificate(each);
    createPrivateKey(key);
    createSecureContext({ cert, key, ca });
  } catch (cause) {
    throw new OperatorError(
      `cluster.tls: the certificate, its key and the authority cannot be used (${reasonOf(cause)})`,
      {
        cause,
      },
    );
  }
  return { cert, key, ca };

  async function text(name: keyof CertificateFiles): Promise<string> {
    try {
      return await readPemFile(files[name]);
    } catch (cause) {
      throw new OperatorError(`cluster.tls.${name}: ${files[name]} cannot be read (${reasonOf(cause)})`, {
        cause,
      });
    }
  }
}
