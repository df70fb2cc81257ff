// The endpoint of an HTTP instance: how it is read, and the networks that are denied by default, which
// net/network-guard.ts checks when a connection is made.

import { endpointNotAllowed } from '../errors/registry-errors.ts';
import { validationFailed } from '../errors/request-errors.ts';

/** The URL class would also accept `http:host` and `http:\\host`. */
const WELL_FORMED = /^https?:\/\/(?<authority>[^\s\\/?#]+)(?<path>\/[^\s\\?#]*)?(?<query>\?[^\s\\#]*)?$/i;

/**
 * The URL for requests. Without a path it gets `defaultPath`; a path, even `/`, is kept. Throws VALIDATION_ERROR
 * at `loc` for a text that is neither an http nor an https URL or has a fragment, and ENDPOINT_NOT_ALLOWED for
 * credentials in the URL. No message repeats the URL, which may contain a secret. Source: ADR 6.
 */
export function readEndpoint(
  written: string,
  loc: readonly (string | number)[],
  defaultPath = '/mcp',
): string {
  const text = written.trim();
  const refuse = (type: string, msg: string) => validationFailed([{ loc, msg, type }]);
  if (!/^https?:/i.test(text) && /^[a-z][a-z0-9+.-]*:\/\//i.test(text))
    throw refuse('url_scheme', 'The scheme of an endpoint must be http or https');
  if (text.includes('#')) throw refuse('url_syntax_violation', 'An endpoint must not have a fragment');
  const parts = WELL_FORMED.exec(text)?.groups;
  if (parts === undefined || !URL.canParse(text))
    throw refuse('url_parsing', 'An endpoint must be a URL such as http://127.0.0.1:9000/mcp');
  if (parts.authority?.includes('@'))
    throw endpointNotAllowed('An endpoint must not contain credentials: put them into "headers".');
  const url = new URL(text);
  if (parts.path === undefined) url.pathname = defaultPath;
  return url.href;
}

/** CIDR form. */
export const DENIED_NETWORKS: readonly string[] = [
  '169.254.0.0/16', // link-local; metadata of AWS, GCP, Azure, DigitalOcean, ...
  'fe80::/10', // link-local
  'fd00:ec2::/32', // metadata, DNS and time of AWS
  'fd20:ce::254/128', // metadata of GCP
  '100.100.100.200/32', // metadata of Alibaba
  '168.63.129.16/32', // wire server of Azure
  '192.0.0.192/32', // metadata of Oracle
  '64:ff9b::a9fe:0/112', // 169.254.0.0/16 behind NAT64
  '64:ff9b:1::/48', // local-use NAT64: the addresses behind it are unknown
  '2002:a9fe::/32', // 169.254.0.0/16 by 6to4
  '::ffff:0:0:0/96', // IPv4 by translation (SIIT)
  '::/96', // IPv4-compatible; ::1 is excluded, see net/network-guard.ts
];
