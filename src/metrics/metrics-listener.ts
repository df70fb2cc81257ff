// The handler of a dedicated listener for Prometheus: serves `GET /metrics` only, without credentials. The bound address decides who
// can reach it; on loopback the Host must be this machine, so that no web page reads it by DNS rebinding.

import type { RequestListener } from 'node:http';
import { isLoopback } from '../config/listeners.ts';
import { LOCAL_HOST } from '../domain/endpoint.ts';
import { METRICS_TYPE, type Prometheus } from './prometheus.ts';

/** `metrics`: undefined while the gateway starts. `onFault`: receives an error that no answer shows. */
export function metricsListener(
  host: string,
  metrics: () => Pick<Prometheus, 'text'> | undefined,
  onFault: (error: unknown) => void,
): RequestListener {
  const isHostAllowed = (sent: string | undefined): boolean =>
    !isLoopback(host) || LOCAL_HOST.test(sent ?? '');
  return (request, response) => {
    const refuse = (status: number, reason: string, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { ...HEADERS, 'Content-Type': 'text/plain; charset=utf-8', ...headers });
      response.end(`${reason}\n`);
    };
    const [path] = (request.url ?? '').split('?', 1);
    const source = metrics();
    if (path !== '/metrics') refuse(404, 'Only /metrics is served here.');
    else if (request.method !== 'GET' && request.method !== 'HEAD')
      refuse(405, 'Only GET and HEAD are served here.', { Allow: 'GET, HEAD' });
    else if (!isHostAllowed(request.headers.host))
      refuse(403, 'The Host of the request is not this machine.');
    else if (source === undefined) refuse(503, 'The gateway is starting.', { 'Retry-After': '1' });
    else {
      source.text().then(
        (text) => {
          response.writeHead(200, { ...HEADERS, 'Content-Type': METRICS_TYPE });
          response.end(text);
        },
        (error: unknown) => {
          onFault(error);
          refuse(500, 'The metrics could not be read.');
        },
      );
    }
  };
}

const HEADERS = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' };
