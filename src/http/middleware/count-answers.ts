// Counts every answer for the metrics, by status and error code.

import type { HttpCounts } from '../../metrics/counts.ts';
import { CLIENT_CLOSED_REQUEST, type HttpMiddleware } from '../request.ts';

export function countAnswers(counts: HttpCounts): HttpMiddleware {
  return ({ res, state }, next) => {
    res.on('close', () =>
      counts.count(res.headersSent ? res.statusCode : CLIENT_CLOSED_REQUEST, state.errorCode),
    );
    return next();
  };
}
