// The pages of the device flow, for our own command line on a machine without a browser: enter the code that it shows,
// sign in, allow or deny.

import type { AdapterPayload } from 'oidc-provider';
import { userPrincipalId } from '../../domain/accounts/principal.ts';
import { WindowCounter } from '../../domain/memory/window-counter.ts';
import { networkOf } from '../../net/network-of.ts';
import { oauthKey } from '../../persistence/oauth-rows.ts';
import type { OAuthRow } from '../../persistence/oauth-store.ts';
import { COMMAND_LINE } from '../clients/client-record.ts';
import { DEVICE_PATH } from '../metadata.ts';
import { formOf, type OAuthExchange, queryOf, redirect, sendPage } from '../oauth-exchange.ts';
import { readPayload } from '../payload.ts';
import { ownFormOf, type SignedIn } from '../sign-ins/sign-ins.ts';
import type { InteractionOptions } from './interaction.ts';
import {
  allowedTo,
  askedFor,
  DENIED,
  type Interactions,
  loginContextOf,
  originOf,
  reachOf,
  SCOPE_WORDS,
} from './interaction.ts';
import { codePage, consentPage, decidedPage, faultPage, foreignFormPage, powerlessPage } from './page.ts';

/** Wrong codes of one network, and of one user, within a minute. There are 25,600 million codes. */
const WRONG_PER_MINUTE = 10;
const MAX_COUNTED = 10_000;
/** Codes as the library makes them: without vowels, so that no words come out. */
const CODE = /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/;

/** The row of a device code, found by the code that its user types. */
export function rowOfUserCode(
  userCode: string,
  deviceKey: string,
  nowMs: number,
  seconds: number,
): Omit<OAuthRow, 'version'> {
  return {
    kind: 'device',
    key: keyOfUserCode(userCode),
    createdAt: new Date(nowMs).toISOString(),
    expiresAt: new Date(nowMs + seconds * 1_000).toISOString(),
    value: deviceKey,
  };
}

function keyOfUserCode(userCode: string): string {
  return oauthKey('device', `user code ${userCode}`);
}

interface DevicePagesOptions
  extends Pick<InteractionOptions, 'clock' | 'store' | 'signIns' | 'login' | 'pathOf' | 'roles'> {
  readonly interactions: Pick<Interactions, 'accountsOf' | 'decide'>;
}

/** The request of a command that waits for its user. */
interface Pending {
  readonly row: OAuthRow;
  readonly payload: AdapterPayload;
}

/**
 * Answers the requests to the pages of the device flow. The library makes the code and answers the command; the
 * decision is written into the row of the code. Sources: RFC 8628, ADR 217.
 */
export class DevicePages {
  readonly #wrong = new WindowCounter({ windowSeconds: 60, keys: MAX_COUNTED });
  readonly #options: DevicePagesOptions;

  constructor(options: DevicePagesOptions) {
    this.#options = options;
  }

  /** `path`: below /oauth/device. */
  async serve(exchange: OAuthExchange, path: string): Promise<void> {
    const { request, response } = exchange;
    const { signIns, login } = this.#options;
    const isPost = request.method === 'POST';
    if (isPost && exchange.isForeign) return sendPage(response, foreignFormPage());
    const [, written = '', step = '', choice = ''] = path.split('/');
    if (written === '') return this.#enter(exchange);
    const code = codeIn(written);
    if (code === undefined) return redirect(response, DEVICE_PATH);
    const action = `${DEVICE_PATH}/${code}`;
    const context = loginContextOf(action, COMMAND_LINE, { kind: 'device', code });
    if (isPost && step === 'login') return login.take(exchange, context);
    const signedIn = await signIns.find(request.headers.cookie);
    if (!isPost && step === 'provider' && (await login.toProvider(exchange, context, choice))) return;
    if (signedIn === undefined) return isPost ? redirect(response, action) : login.show(exchange, context);
    if (!isPost) return this.#ask(exchange, code, signedIn);
    const form = await ownFormOf(request, signedIn);
    if (form === undefined) return redirect(response, action);
    if (step === 'sign-out') return redirect(response, action, await signIns.end(request.headers.cookie));
    return this.#answer(exchange, code, signedIn, form.get('decision') === 'allow');
  }

  async #enter({ request, response }: OAuthExchange): Promise<void> {
    const sent =
      request.method === 'POST' ? new URLSearchParams((await formOf(request)) ?? '') : queryOf(request);
    const written = sent.get('user_code');
    if (written === null) return sendPage(response, codePage());
    const code = codeIn(written);
    if (code === undefined)
      return sendPage(response, codePage('A code has eight letters, such as BCDF-GHJK.'));
    redirect(response, `${DEVICE_PATH}/${code}`);
  }

  async #ask(exchange: OAuthExchange, code: string, signedIn: SignedIn): Promise<void> {
    const { response } = exchange;
    const pending = await this.#find(exchange, code, signedIn);
    if (pending === undefined) return;
    const { user, formToken } = signedIn;
    const { asked, path } = this.#askedIn(pending);
    const scopes = allowedTo(user, asked.scopes, this.#options.roles);
    if (scopes.length === 0) return sendPage(response, powerlessPage(COMMAND_LINE.name, user.username));
    const { address } = Object(pending.payload.deviceInfo);
    sendPage(
      response,
      consentPage({
        action: `${DEVICE_PATH}/${code}`,
        formToken,
        username: user.username,
        clientName: COMMAND_LINE.name,
        origin: originOf(COMMAND_LINE),
        destination: `the machine that asked, at the address ${address}`,
        scopes: scopes.map((scope) => SCOPE_WORDS[scope]),
        dropped: [],
        ...reachOf([user], path),
        accounts: await this.#options.interactions.accountsOf(user, COMMAND_LINE, path),
        code: shown(code),
      }),
    );
  }

  async #answer(
    exchange: OAuthExchange,
    code: string,
    signedIn: SignedIn,
    isAllowed: boolean,
  ): Promise<void> {
    const pending = await this.#find(exchange, code, signedIn);
    if (pending === undefined) return;
    const { row, payload } = pending;
    const { user } = signedIn;
    const { asked } = this.#askedIn(pending);
    const grant = await this.#options.interactions.decide(exchange, {
      user,
      client: COMMAND_LINE,
      asked,
      isAllowed,
    });
    const decision =
      grant === undefined
        ? { error: 'access_denied', errorDescription: DENIED }
        : { accountId: user.id, grantId: grant.id, resource: grant.resource, scope: grant.scopes.join(' ') };
    const decided = {
      ...row,
      ...(grant !== undefined && { userId: user.id, grantId: grant.id }),
      value: JSON.stringify({ ...payload, ...decision }),
    };
    // A request has one answer: of two pages, the first one counts.
    if (await this.#options.store.replace(decided, row.version))
      return sendPage(exchange.response, decidedPage(grant !== undefined, COMMAND_LINE.name));
    if (grant !== undefined) await this.#options.store.end({ grantId: grant.id });
    this.#sendUnknown(exchange);
  }

  #askedIn({ payload }: Pending) {
    const params = Object(payload.params);
    const asked = askedFor({ params }, COMMAND_LINE);
    return { asked, path: this.#options.pathOf(asked.resource) ?? '' };
  }

  /** Answers the request itself, and resolves with undefined, when the code is not one that waits. */
  async #find(exchange: OAuthExchange, code: string, { user }: SignedIn): Promise<Pending | undefined> {
    const { store, clock } = this.#options;
    const counted = [networkOf(exchange.address), userPrincipalId(user.id)];
    if (counted.some((key) => this.#wrong.add(key, clock.now(), 0).count >= WRONG_PER_MINUTE)) {
      const page = faultPage(429, 'Too many codes', {
        what: 'Too many codes were wrong.',
        next: 'Try again in a minute.',
      });
      sendPage(exchange.response, page, ['Retry-After', '60']);
      return undefined;
    }
    const [pointer] = await store.find('device', [keyOfUserCode(code)]);
    const [row] = pointer === undefined ? [] : await store.find('device', [pointer.value]);
    const isOver = row === undefined || Date.parse(row.expiresAt ?? '') <= clock.wall();
    const payload = isOver ? {} : readPayload(row);
    // A second click, or the way back to the page.
    if (payload.accountId === user.id) {
      sendPage(exchange.response, decidedPage(true, COMMAND_LINE.name));
      return undefined;
    }
    const isDecided = payload.accountId !== undefined || payload.error !== undefined;
    if (!isOver && !isDecided && row.consumedAt === undefined) return { row, payload };
    for (const key of counted) this.#wrong.add(key, clock.now(), 1);
    this.#sendUnknown(exchange);
    return undefined;
  }

  #sendUnknown({ response }: OAuthExchange): void {
    const problem =
      'This code is wrong, was used, or is older than ten minutes. Start the command again for a new one.';
    sendPage(response, codePage(problem));
  }
}

/** The letters of a code as a user wrote it. */
function codeIn(written: string): string | undefined {
  const letters = written
    .slice(0, 40)
    .toUpperCase()
    .replace(/[^A-Z]/g, '');
  return CODE.test(letters) ? letters : undefined;
}

function shown(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}
