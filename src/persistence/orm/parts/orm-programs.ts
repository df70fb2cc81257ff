// The leases of programs in a database. Each change is a conditional update: it names what was read. Source: ADR 146, 168.

import type { ProgramStore, StoredProgram } from '../../store.ts';
import type { OrmOperations } from '../connection/orm-operations.ts';
import { fromDocument, type TableRow, toDocument } from '../entities.ts';

export function ormPrograms(operations: OrmOperations): ProgramStore {
  const isHeld = async (program: string): Promise<boolean> =>
    operations.run(async (em, { programs }) => (await em.count(programs, { program })) > 0);
  return {
    list: () =>
      operations.run(async (em, { programs }) => {
        const rows: TableRow<'programs'>[] = await em
          .createQueryBuilder(programs)
          .orderBy({ program: 'asc' })
          .execute('all');
        return rows.map(storedOf);
      }),
    take: async (program, generation, life) => {
      const next = { life, generation: generation + 1 };
      if (generation > 0)
        return operations.writeAtOnce(
          async (em, { programs }) => (await em.nativeUpdate(programs, { program, generation }, next)) > 0,
        );
      if (await isHeld(program)) return false;
      try {
        await operations.write(async (em, { programs }) => {
          await em.insert(programs, { program, ...next, marks: toDocument('') });
        });
        return true;
      } catch (thrown) {
        if (await isHeld(program)) return false; // by another node at the same time
        throw thrown;
      }
    },
    release: ({ program, life, generation, marks }) =>
      operations.writeAtOnce(async (em, { programs }) => {
        const next = { life: null, marks: toDocument(marks) };
        return (await em.nativeUpdate(programs, { program, life: life ?? null, generation }, next)) > 0;
      }),
    delete: (rows) =>
      operations.write(async (em, { programs }) => {
        for (const { program, life, generation } of rows)
          await em.nativeDelete(programs, { program, life: life ?? null, generation });
      }),
  };
}

function storedOf({ program, life, generation, marks }: TableRow<'programs'>): StoredProgram {
  return { program, life: life || undefined, generation, marks: String(fromDocument(marks)) };
}
