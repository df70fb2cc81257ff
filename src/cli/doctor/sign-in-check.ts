// The check of the sign-in: the address that clients and browsers use, the identity providers, asked as a browser would, and
// the keys of other issuers. No user signs in, and no secret is sent.

import { IssuerKeys, SKEW_SECONDS } from '../../auth/issuers/issuer-keys.ts';
import type { Config } from '../../config/config.ts';
import { type IssuerSetting, isSafeUrl } from '../../config/issuer-settings.ts';
import { PROVIDER_CALLBACK, type ProviderSetting } from '../../config/provider-settings.ts';
import { codeOf, messageOf } from '../../domain/errors/errors.ts';
import { isLoopback, localUrl } from '../../domain/local-address.ts';
import { systemClock } from '../../domain/time/clock.ts';
import { printable } from '../output.ts';
import { beginningOf, gatewayAt } from '../remote/answering-url.ts';
import { answerIn, type Fields, fields } from '../remote/answers.ts';
import { certificateFault } from '../remote/certificate-fault.ts';
import { type CheckResult, fail, ok, warn } from './result.ts';

/** The longest wait for one answer, in ms. */
const ANSWER_MS = 5_000;

export async function checkSignIn(config: Config): Promise<readonly CheckResult[]> {
  const { authEnabled, oauth, publicUrl, listeners, tls } = config;
  if (!authEnabled) return [ok('off: the gateway has no accounts')];
  const keys = oauth.issuers.map(checkIssuer);
  if (!oauth.isEnabled) return [ok('off: auth.oauth is false'), ...(await Promise.all(keys))];
  const scheme = tls.cert === undefined ? 'http' : 'https';
  const address = publicUrl ?? `${scheme}://127.0.0.1:${listeners[0]?.port}`;
  const found = await Promise.all([
    checkAddress(config),
    ...oauth.providers.map((provider) => checkProvider(provider, address)),
    ...keys,
  ]);
  return found.flat();
}

/** Reads the keys of an issuer of `auth.issuers` as the first request with one of its tokens does. */
async function checkIssuer(setting: IssuerSetting): Promise<CheckResult> {
  let fault = '';
  const log = (line: string): void => {
    fault = line;
  };
  const isRead = new IssuerKeys(setting, systemClock, log).current(false).then(
    () => true,
    () => false,
  );
  if (await isRead) return ok(`the keys of the issuer ${setting.issuer} can be read`);
  return warn(fault, 'start its server, or correct `issuer` or `jwks_uri` in auth.issuers');
}

async function checkAddress({ publicUrl, listeners }: Config): Promise<readonly CheckResult[]> {
  if (publicUrl === undefined) {
    const isOpen = listeners.some(({ host }) => !isLoopback(host));
    return [ok(`for clients on this machine${isOpen ? '; others need public_url, an https address' : ''}`)];
  }
  const answer = await ask(`${publicUrl}/.well-known/oauth-protected-resource`);
  if (answer instanceof Error) {
    const fault = certificateFault(publicUrl, answer);
    if (fault !== undefined) return [warn(fault, null)];
    const running = await Promise.all(
      listeners.map(({ host, port }) =>
        port === 0 ? undefined : gatewayAt(localUrl(host, port), ANSWER_MS),
      ),
    );
    if (running.every((each) => each === undefined))
      return [ok(`at ${publicUrl}; not tried, since the gateway does not run`)];
    const advice = 'correct public_url, its DNS name or the proxy, if browsers cannot open it either';
    return [warn(`public_url ${publicUrl} does not answer here: ${fetchReason(answer)}`, advice)];
  }
  if (answer.body.resource === publicUrl) return [ok(`at ${publicUrl}, which answers as this gateway`)];
  return [
    warn(
      `public_url ${publicUrl} answers ${answer.status}, and not as a gateway with this address`,
      'let public_url be the address of this gateway; a proxy in front passes on all paths, those below /.well-known/ included',
    ),
  ];
}

async function checkProvider(provider: ProviderSetting, address: string): Promise<readonly CheckResult[]> {
  const { issuer, label, clientId } = provider;
  const name = `${label} (${issuer})`;
  const place = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const answer = await ask(place);
  if (answer instanceof Error)
    return [
      warn(
        `${name} cannot be reached: ${fetchReason(answer)}`,
        'start it, or correct `issuer` in auth.providers',
      ),
    ];
  const { issuer: said, authorization_endpoint: endpoint } = answer.body;
  if (typeof said !== 'string' || typeof endpoint !== 'string' || !isSafeUrl(endpoint.replace(/\?.*$/s, '')))
    return [
      warn(
        `${name} answers ${answer.status} at ${place}, without metadata`,
        'correct `issuer` in auth.providers',
      ),
    ];
  if (!isIssuer(said, provider))
    return [
      fail(
        printable(`${name} names itself ${said}`),
        'write `issuer` in auth.providers as the provider does',
      ),
    ];
  const redirectUri = `${address}${PROVIDER_CALLBACK}${provider.id}`;
  const skew = Math.round((answer.dateMs - Date.now()) / 1_000);
  const clock =
    Math.abs(skew) > SKEW_SECONDS
      ? [
          warn(
            `the clock of ${name} is ${Math.abs(skew)} s ${skew > 0 ? 'ahead of' : 'behind'} this one`,
            'synchronise both clocks: sign-ins fail',
          ),
        ]
      : [];
  return [...clock, await checkClient(name, endpoint, { clientId, redirectUri })];
}

/**
 * Whether an issuer is that of the provider, in the comparison of sign-ins: as a URL, and Microsoft uses another
 * name. Identity assertions compare the text.
 */
function isIssuer(said: string, { issuer, idJag }: ProviderSetting): boolean {
  if (said === issuer || idJag === true) return said === issuer;
  const { href, origin, hostname } = new URL(issuer);
  const isMicrosoft = origin === 'https://login.microsoftonline.com' || hostname.endsWith('.b2clogin.com');
  return isMicrosoft || URL.parse(said)?.href === href;
}

/** Asks for a sign-in without a user: a provider that knows client and redirect URI sends the browser back with an error. */
async function checkClient(
  name: string,
  endpoint: string,
  { clientId, redirectUri }: { readonly clientId: string; readonly redirectUri: string },
): Promise<CheckResult> {
  const asked = new URL(endpoint);
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'openid',
    prompt: 'none',
    state: 'doctor',
    nonce: 'doctor',
    code_challenge_method: 'S256',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  };
  for (const [key, value] of Object.entries(parameters)) asked.searchParams.set(key, value);
  const answer = await ask(asked.href);
  if (answer instanceof Error)
    return warn(`${name} has metadata, and no sign-in page: ${fetchReason(answer)}`, 'look into its log');
  const { status, location } = answer;
  if (status < 400 && location.startsWith(`${redirectUri}?`)) {
    const error = URL.parse(location)?.searchParams.get('error') ?? '';
    if (['unauthorized_client', 'invalid_scope', 'unsupported_response_type'].includes(error))
      return warn(
        `${name} refuses sign-ins of the client ${clientId}: ${error}`,
        'allow it the authorization code flow there',
      );
    return ok(`${name} knows this gateway as ${clientId}`);
  }
  if (status >= 400)
    return warn(
      `${name} does not know the client ${clientId} with the redirect URI ${redirectUri} (it answers ${status})`,
      'register this redirect URI there, and compare client_id',
    );
  return ok(`${name} answers; its client needs the redirect URI ${redirectUri}`);
}

interface Answer {
  readonly status: number;
  readonly body: Fields;
  readonly location: string;
  readonly dateMs: number;
}

async function ask(url: string): Promise<Answer | Error> {
  try {
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(ANSWER_MS) });
    const { status, headers } = response;
    const dateMs = Date.parse(headers.get('date') ?? '');
    const body = fields(answerIn(await beginningOf(response)));
    return { status, body, location: headers.get('location') ?? '', dateMs };
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function fetchReason(error: Error): string {
  if (error.name === 'TimeoutError') return `no answer within ${ANSWER_MS / 1_000} s`;
  const cause = error.cause ?? error;
  return codeOf(cause) ?? messageOf(cause);
}
