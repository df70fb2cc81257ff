// The form with user name and password, on the pages for connections. A password is checked as that of POST /auth/login: the same
// throttle, the same two hashes at once, the audit.

import type { Auth } from '../../auth/auth.ts';
import { WindowCounter } from '../../auth/rate-limiter.ts';
import type { NewEntry } from '../../domain/audit.ts';
import type { Clock } from '../../domain/clock.ts';
import { asGatewayError } from '../../domain/errors.ts';
import { HTTP_LIMITS } from '../limits.ts';
import { type LoginView, loginPage } from './connection-views.ts';
import { formOf, type OAuthExchange, redirect, sendPage } from './exchange.ts';
import type { SignIns } from './sign-ins.ts';

export interface PasswordFormOptions extends Pick<Clock, 'now'> {
  readonly auth: Pick<Auth, 'checkPassword' | 'audit'>;
  readonly signIns: SignIns;
}

export class PasswordForm {
  /** All unknown callers count as one, as in middleware/audit-trail.ts. */
  readonly #failures = new WindowCounter({ windowSeconds: 60, keys: 1 });
  readonly #options: PasswordFormOptions;

  constructor(options: PasswordFormOptions) {
    this.#options = options;
  }

  /** Signs the browser in and sends it to the page `view.action`, or shows the form again. `subject`: for the audit log. */
  async take(exchange: OAuthExchange, view: LoginView, subject: string): Promise<void> {
    const { request, response, address, isLocal, requestId } = exchange;
    const form = new URLSearchParams((await formOf(request)) ?? '');
    const username = form.get('username') ?? '';
    const { auth, signIns } = this.#options;
    const entryOf = (actor: string, actorName: string, status: number) => ({
      ...{ actor, actorName, action: 'POST /oauth/login', subject, status, address, requestId },
    });
    try {
      const password = form.get('password') ?? '';
      const user = await auth.checkPassword({ username, password, address, isLocal });
      auth.audit.record(entryOf(`user:${user.id}`, user.username, 200));
      redirect(response, view.action, await signIns.begin(user, request.headers.cookie));
    } catch (thrown) {
      const error = asGatewayError(thrown);
      this.#recordFailure(entryOf('unknown', 'unknown', error.status));
      const problem =
        error.code === 'INVALID_CREDENTIALS'
          ? 'The user name or the password is wrong. Try again.'
          : error.code === 'TOO_MANY_ATTEMPTS'
            ? 'There were too many attempts. Try again in a minute.'
            : 'The gateway cannot check passwords at this moment. Try again in a minute.';
      const { retryAfterSeconds } = error.facts;
      const later = retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)];
      sendPage(response, loginPage({ ...view, username, problem, status: error.status }), later);
    }
  }

  /** The log keeps a bounded number of entries: failures beyond some per minute are counted instead. Names may be mistyped passwords. */
  #recordFailure(entry: NewEntry): void {
    const { auth, now } = this.#options;
    const { recordedRefusalsPerMinute: most } = HTTP_LIMITS;
    if (this.#failures.add('unknown', now(), 1, most).count > most) auth.audit.suppress(entry);
    else auth.audit.record(entry);
  }
}
