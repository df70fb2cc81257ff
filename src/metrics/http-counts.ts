// Counts the HTTP answers of an app: by status, and by error code. Both are bounded by their catalogues.

import type { ErrorCode } from '../domain/errors.ts';
export class HttpCounts {
  readonly statuses = new Map<number, number>();
  readonly errors = new Map<ErrorCode, number>();

  count(status: number, code: ErrorCode | undefined): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (code !== undefined) this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
  }
}
