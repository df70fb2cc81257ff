// The settings `cluster.tls`: all three or none.

import type { Logger } from 'pino';
import type { PeerCertificates } from '../cluster/channel/peer-certificates.ts';
import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { systemClock } from '../domain/time/clock.ts';

/** Undefined without certificates of the operator. Rejects with ConfigError, and with OperatorError for files that cannot be used. */
export async function certificatesOf(
  { cert, key, ca }: Config['cluster']['tls'],
  log: Pick<Logger, 'warn'>,
): Promise<PeerCertificates | undefined> {
  if (cert === undefined && key === undefined && ca === undefined) return undefined;
  if (cert === undefined || key === undefined || ca === undefined)
    throw new ConfigError('cluster.tls: cert, key and ca belong together; set all three or none');
  const { readCertificates } = await import('../cluster/channel/peer-certificates.ts');
  const onWarning = (line: string) => log.warn(line);
  return readCertificates({ cert, key, ca }, { clock: systemClock, onWarning });
}
