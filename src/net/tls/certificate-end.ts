// The expiry of a certificate, and the warnings of it: some days before, and then each day.

import { X509Certificate } from 'node:crypto';
import { type Clock, DAY_MS, HOUR_MS } from '../../domain/time/clock.ts';
import type { Renewed } from './renewed.ts';

/** The last part of a certificate's life, in ms, and as a share of a shorter one. Programs that renew do it earlier. */
const SOON_MS = 14 * DAY_MS;
const SOON_SHARE = 1 / 4;

export interface CertificateEnd {
  readonly state: 'valid' | 'soon' | 'expired';
  readonly validTo: Date;
}

/** The end of the first certificate of a text in PEM. */
export function certificateEndOf(pem: string, wallMs: number): CertificateEnd {
  const certificate = new X509Certificate(pem);
  const validTo = new Date(certificate.validTo);
  const leftMs = validTo.getTime() - wallMs;
  const lifeMs = validTo.getTime() - Date.parse(certificate.validFrom);
  const isSoon = leftMs <= Math.min(SOON_MS, lifeMs * SOON_SHARE);
  return { state: leftMs <= 0 ? 'expired' : isSoon ? 'soon' : 'valid', validTo };
}

/**
 * Warns at once, after each renewal, and then once a day, while the certificate expires soon or has expired. `setting` names it.
 * The returned function ends the warnings.
 */
export function warnOfEnd(
  setting: string,
  pair: Pick<Renewed<{ readonly cert: string }>, 'present' | 'onChange'>,
  clock: Clock,
  onWarning: (line: string) => void,
): () => void {
  let said = { line: '', atMs: 0 };
  const look = (): void => {
    const { state, validTo } = certificateEndOf(pair.present().cert, clock.wall());
    const when = state === 'expired' ? 'expired' : 'must be renewed, it expires';
    const line = state === 'valid' ? '' : `${setting}: the certificate ${when} at ${validTo.toISOString()}`;
    const atMs = clock.now();
    if (line === said.line && atMs - said.atMs < DAY_MS) return;
    said = { line, atMs };
    if (line !== '') onWarning(line);
  };
  look();
  pair.onChange(look);
  return clock.background.every(HOUR_MS, look);
}
