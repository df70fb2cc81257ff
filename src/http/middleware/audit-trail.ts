// Records, with any outcome, every request that may change the registry, the accounts or the settings, every login,
// and the calls of tools. Never bodies, queries or credentials; auth/audit/audit-log.ts handles the arguments of calls.

import type { AuditLog } from '../../auth/audit/audit-log.ts';
import type { Scope } from '../../domain/accounts/account.ts';
import { mayDo, nameOf } from '../../domain/accounts/principal.ts';
import type { CallOutcome } from '../../domain/calls/exchange-event.ts';
import { asGatewayError, ERRORS, type ErrorCode } from '../../domain/errors/errors.ts';
import { CALL_ACTION } from '../../domain/events/audit-entries.ts';
import { LIMITS } from '../../domain/limits.ts';
import { WindowCounter } from '../../domain/memory/window-counter.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Proxies } from '../callers/proxies.ts';
import { CLIENT_CLOSED_REQUEST, ClientGone } from '../client-gone.ts';
import { type HttpContext, type ReportListener, type RouteMiddleware, templateIn } from '../context.ts';
import type { HttpRoute } from '../routing/route.ts';

/** The most callers whose limited entries of a minute are counted. */
const MAX_CALLERS = 10_000;
/** Callers with one of these make changes that are all recorded; others only log in and out, and change what is their own. */
const CHANGING: readonly Scope[] = ['gateway:write', 'admin'];

/**
 * Makes the middleware of one app: one or none for a route. It comes first, so that refusals are recorded, too.
 * The log keeps a bounded number of entries, and no caller may evict those of others: a caller's refusals, and all requests of
 * a caller that may not change the gateway, are recorded up to a number per minute, with all unauthenticated callers counted as
 * one, and requests over the rate limit are not recorded. Those that are not recorded are counted, unless a known caller was
 * refused. `now` is monotonic, in ms.
 */
export function auditTrail(
  audit: Pick<AuditLog, 'record' | 'suppress'>,
  proxies: Pick<Proxies, 'address'>,
  now: Clock['now'],
): (route: Pick<HttpRoute, 'method' | 'path' | 'changesNothing'>) => RouteMiddleware[] {
  const recorded = new WindowCounter({ windowSeconds: 60, keys: MAX_CALLERS });
  const most = LIMITS.recordedRefusalsPerMinute;
  const record = (action: string, { state, path, req }: HttpContext, status: number): void => {
    const { requestId, principal, trail } = state;
    const actor = trail?.actor ?? principal ?? UNKNOWN;
    if (status === TOO_MANY_REQUESTS && actor !== UNKNOWN) return;
    const isRefusal = status >= 400;
    const isLimited = isRefusal || principal === undefined || !mayDo(principal, CHANGING);
    // Refusals have a count of their own: a caller must not hide by them what it does.
    const key = isRefusal ? `refused ${actor.id}` : actor.id;
    const isOver = isLimited && recorded.add(key, now(), 1, most).count > most;
    if (isOver && isRefusal && actor !== UNKNOWN) return;
    const entry = {
      actor: actor.id,
      actorName: nameOf(actor),
      action,
      subject: trail?.subject ?? path,
      status,
      address: state.forwarded === undefined ? proxies.address(req) : state.forwarded.address,
      requestId,
    };
    if (isOver) audit.suppress(entry);
    else audit.record(entry);
  };

  return (route) => {
    if (route.method === 'GET' || route.changesNothing === true) return [];
    const action = `${route.method} ${route.path}`;
    const recording: RouteMiddleware = async (context, next) => {
      try {
        await next();
      } catch (thrown) {
        const isGone = thrown instanceof ClientGone;
        record(action, context, isGone ? CLIENT_CLOSED_REQUEST : asGatewayError(thrown).status);
        throw thrown;
      }
      record(action, context, context.res.statusCode);
    };
    return [recording];
  };
}

/**
 * Records the calls of tools, by REST and by MCP, at their end. A request that is refused before it becomes a
 * call (no credentials, rate limit, no session, headers that differ from the body) is not recorded.
 */
export function callTrail(
  audit: Pick<AuditLog, 'recordsCalls' | 'recordCall'>,
  now: Clock['now'],
): ReportListener {
  return (report, { state, path }) => {
    const {
      method,
      tool = '',
      outcome = 'cancelled',
      errorCode,
      sentTo,
      address,
      attempts,
      startMs,
    } = report;
    if (!audit.recordsCalls || method !== 'tools/call') return;
    const { principal = UNKNOWN, requestId } = state;
    const entry = {
      actor: principal.id,
      actorName: nameOf(principal),
      action: CALL_ACTION,
      subject: path,
      status: statusOf(outcome, errorCode),
      requestId,
      address,
      call: {
        template: templateIn(state, report) ?? '',
        tool,
        view: report.view,
        instance: sentTo?.id,
        outcome,
        durationMs: Math.round(now() - startMs),
        attempts,
      },
    };
    audit.recordCall(entry, report.arguments);
  };
}

/** The HTTP status of the same outcome over REST: that of a call over MCP says little. */
function statusOf(outcome: CallOutcome, code: ErrorCode | number | undefined): number {
  if (outcome === 'cancelled') return CLIENT_CLOSED_REQUEST;
  if (outcome === 'result' || outcome === 'tool_error') return 200;
  return typeof code === 'string' ? ERRORS[code].status : 500;
}

const TOO_MANY_REQUESTS = 429;
const UNKNOWN = { id: 'unknown', name: 'unknown' };
