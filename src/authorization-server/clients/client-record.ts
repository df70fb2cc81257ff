// A client of the authorization server: the part of a registration or of a client's document that is kept, and the part that the
// library sees. Everything that is not named here is dropped, not refused: clients send fields of many profiles. Source: RFC
// 7591, ADR 203.

import type { AllClientMetadata } from 'oidc-provider';
import type { Scope } from '../../domain/accounts/account.ts';
import type { RightsLists } from '../../domain/accounts/rights.ts';
import { isJsonObject } from '../../domain/json/json.ts';
import { plainLine } from '../../domain/text.ts';

export interface ClientRecord {
  readonly id: string;
  /** The name of the client: at most 60 characters, none of them invisible. */
  readonly name: string;
  readonly redirectUris: readonly string[];
  readonly mayRefresh: boolean;
  /** Whether it exchanges identity assertions. */
  readonly mayAssert?: boolean | undefined;
  readonly authMethod: (typeof AUTH_METHODS)[number];
  /** `registered` itself, by its `document`, or `added` by an admin. */
  readonly source: 'registered' | 'document' | 'added';
  /** Scopes that an admin allowed, in addition to those of every client. */
  readonly scopes: readonly Scope[];
  /** The rights to which an admin has limited the client. Absent: no limits. */
  readonly lists?: RightsLists | undefined;
  readonly secret?: string | undefined;
  /** The keys of a client, from its document. */
  readonly jwks?: unknown;
  readonly jwksUri?: string | undefined;
}

/** The grant type of identity assertions. Source: RFC 7523. */
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
/** The grant type of the device flow. Source: RFC 8628. */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

/** Our own command line, which is known without a row. Its user decides on the consent page, as for all other clients. */
export const COMMAND_LINE: ClientRecord = {
  id: 'stagedoor-cli',
  name: 'stagedoor command line',
  redirectUris: ['http://127.0.0.1/callback'],
  mayRefresh: true,
  authMethod: 'none',
  source: 'added',
  scopes: ['gateway:write', 'admin'],
};

export const AUTH_METHODS = ['none', 'client_secret_post', 'client_secret_basic', 'private_key_jwt'] as const;

const MAX_URIS = 10;
const MAX_URI_LENGTH = 500;
const NAME_CHARACTERS = 60;
/** Schemes that a browser or the system handles itself: no client gets an answer there. Source: ADR 393. */
const FORBIDDEN: ReadonlySet<string> = new Set(
  [
    'javascript vbscript livescript data blob file filesystem about view-source chrome resource res jar mhtml mk its',
    'jnlp jnlps applescript intent market android-app content itms itms-apps itms-services prefs shell search help hcp',
    'x-man-page calculator onenote windowsdefender mailto tel sms callto sip sips facetime skype news nntp magnet ws wss',
    'ftp ftps sftp tftp ldap ldaps gopher wais smb cifs nfs afp ssh telnet rlogin tn3270 rdp vnc',
  ].flatMap((names) => names.split(' ').map((name) => `${name}:`)),
);
/** The same of Windows, macOS and iOS, by the form of their names: `ms-msdt:`, `search-ms:`, `x-apple.systempreferences:`. */
const OF_SYSTEM = /^(?:ms-|microsoft[-.]|x-apple|x-help|app-settings|app-prefs)|-ms:$/;
/** A private scheme with a dot, as RFC 8252 (7.1, 8.4) asks; of one without, the form of clients that have a name behind it. */
const PRIVATE = /^[^:]*\.[^:]*:|^[^:]+:\/\/\w/;
/**
 * Two slashes, a name or an address, a port. A browser accepts more, `;` and `*` too, which mean something in a
 * policy of pages.
 */
const WEB_ORIGIN = /^https?:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:[/?]|$)/i;
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** A refusal in the words of RFC 7591. */
export class BadClient extends Error {
  readonly code: 'invalid_redirect_uri' | 'invalid_client_metadata';

  constructor(code: BadClient['code'], message: string) {
    super(message);
    this.name = 'BadClient';
    this.code = code;
  }
}

/** The fields of a registration or a document. Throws BadClient. */
export function clientOf(
  fields: unknown,
  own: Pick<ClientRecord, 'id' | 'source' | 'scopes' | 'lists'>,
): Omit<ClientRecord, 'secret'> {
  if (!isJsonObject(fields)) throw new BadClient('invalid_client_metadata', 'this is not a JSON object');
  const redirectUris = urisOf(fields.redirect_uris);
  const responses = fields.response_types;
  if (Array.isArray(responses) && responses.length > 0 && !responses.includes('code'))
    throw new BadClient('invalid_client_metadata', 'only the response type "code" is supported');
  const grants = Array.isArray(fields.grant_types) ? fields.grant_types : ['authorization_code'];
  if (grants.length > 0 && !grants.includes('authorization_code'))
    throw new BadClient('invalid_client_metadata', 'the grant type "authorization_code" is missing');
  const written = fields.token_endpoint_auth_method;
  // A registration that names no method gets a secret, by RFC 7591; a document cannot have one.
  const wanted = written ?? (own.source === 'registered' ? 'client_secret_basic' : 'none');
  const authMethod = AUTH_METHODS.find((method) => method === wanted);
  if (authMethod === undefined)
    throw new BadClient(
      'invalid_client_metadata',
      `token_endpoint_auth_method must be one of ${AUTH_METHODS.join(', ')}`,
    );
  const isDocument = own.source === 'document';
  if (isDocument && (authMethod.startsWith('client_secret') || 'client_secret' in fields))
    throw new BadClient('invalid_client_metadata', 'a document must have no secret');
  if (!isDocument && authMethod === 'private_key_jwt')
    throw new BadClient('invalid_client_metadata', 'only a client with a document signs with its own key');
  const jwksUri = isDocument && typeof fields.jwks_uri === 'string' ? fields.jwks_uri : undefined;
  if (jwksUri !== undefined && URL.parse(jwksUri)?.protocol !== 'https:')
    throw new BadClient('invalid_client_metadata', 'jwks_uri must be an https URL');
  return {
    ...own,
    name: nameOf(fields.client_name, own.id),
    redirectUris,
    mayRefresh: grants.includes('refresh_token'),
    // RFC 7523: only a client that authenticates.
    ...(grants.includes(JWT_BEARER) && authMethod !== 'none' ? { mayAssert: true } : {}),
    authMethod,
    ...(isDocument && isJsonObject(fields.jwks) ? { jwks: fields.jwks } : {}),
    ...(jwksUri === undefined ? {} : { jwksUri }),
  };
}

function nameOf(written: unknown, id: string): string {
  const name = typeof written === 'string' ? plainLine(written.slice(0, 1_000).replace(/\p{Cf}/gu, '')) : '';
  const characters = [...(name === '' ? (URL.parse(id)?.host ?? 'a client without a name') : name)];
  return characters.length > NAME_CHARACTERS
    ? `${characters.slice(0, NAME_CHARACTERS - 1).join('')}…`
    : characters.join('');
}

function urisOf(written: unknown): readonly string[] {
  if (!Array.isArray(written) || written.length === 0)
    throw new BadClient('invalid_redirect_uri', 'redirect_uris must name at least one address');
  if (written.length > MAX_URIS)
    throw new BadClient('invalid_redirect_uri', `redirect_uris must have at most ${MAX_URIS} addresses`);
  return written.map((uri, index) => {
    const fault = typeof uri === 'string' ? uriFault(uri) : 'is not a text';
    if (fault !== undefined) throw new BadClient('invalid_redirect_uri', `redirect_uris[${index}] ${fault}`);
    return String(uri);
  });
}

function uriFault(uri: string): string | undefined {
  if (uri.length > MAX_URI_LENGTH) return `has more than ${MAX_URI_LENGTH} characters`;
  // A parser drops or repairs these characters; clients and servers would not agree on the rest.
  if (/[\s\\]|[^\x21-\x7e]/.test(uri)) return 'has characters that a URL must escape';
  const url = URL.parse(uri);
  if (url === null || !/^[a-z][a-z0-9+.-]*:/i.test(uri)) return 'is not an absolute URL';
  if (uri.includes('#')) return 'has a fragment';
  if (url.username !== '' || url.password !== '') return 'has a user name';
  const isWeb = /^https?:$/.test(url.protocol);
  if (isWeb && !WEB_ORIGIN.test(uri)) return 'has an unusual host';
  if (FORBIDDEN.has(url.protocol) || OF_SYSTEM.test(url.protocol)) return `has the scheme ${url.protocol}`;
  if (!isWeb && !PRIVATE.test(uri))
    return `needs a dot in its scheme, or "//" and a name after ${url.protocol}`;
  if (url.protocol === 'http:' && !LOOPBACK_NAMES.has(url.hostname))
    return 'must be https, or on this machine';
  if (url.protocol === 'https:' && LOOPBACK_NAMES.has(url.hostname)) return 'must be http on this machine';
  return undefined;
}

/** True for an address at which a program on the user's machine waits. With another scheme the system chooses the program. */
export function isLoopbackRedirect({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && LOOPBACK_NAMES.has(hostname);
}

/** True for programs on the user's machine: their port is free, and private schemes may be used. */
function isNative({ redirectUris }: Pick<ClientRecord, 'redirectUris'>): boolean {
  return redirectUris.some((uri) => new URL(uri).protocol !== 'https:');
}

export function metadataOf(client: ClientRecord): AllClientMetadata {
  return {
    client_id: client.id,
    client_name: client.name,
    redirect_uris: [...client.redirectUris],
    response_types: ['code'],
    grant_types: [
      'authorization_code',
      ...(client.mayRefresh ? ['refresh_token'] : []),
      ...(client.mayAssert === true ? [JWT_BEARER] : []),
      // Other clients could use this grant type for phishing.
      ...(client.id === COMMAND_LINE.id ? [DEVICE_GRANT] : []),
    ],
    token_endpoint_auth_method: client.authMethod,
    application_type: isNative(client) ? 'native' : 'web',
    ...(client.secret === undefined ? {} : { client_secret: client.secret }),
    ...(client.jwks === undefined ? {} : { jwks: client.jwks as NonNullable<AllClientMetadata['jwks']> }),
    ...(client.jwksUri === undefined ? {} : { jwks_uri: client.jwksUri }),
  };
}
