// Runs a statement on a connection that has just been opened, before anybody else can use it.

/** `connection` is what MikroORM hands to `onCreateConnection` of its pooled drivers. */
export async function runOn(connection: unknown, sql: string): Promise<void> {
  if (!runsQueries(connection)) throw new TypeError('the driver handed out no connection');
  await connection.executeQuery({ sql, parameters: [] });
}

interface QueryRunner {
  executeQuery(query: { readonly sql: string; readonly parameters: readonly unknown[] }): Promise<unknown>;
}

function runsQueries(connection: unknown): connection is QueryRunner {
  return (
    typeof connection === 'object' &&
    connection !== null &&
    'executeQuery' in connection &&
    typeof connection.executeQuery === 'function'
  );
}
