import { Migration } from '@mikro-orm/migrations';

export class Migration20261122045954_call_blocks extends Migration {
  override name = 'Migration20261122045954_call_blocks';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "audit_call_blocks" ("id" varchar2(64) not null, "calls" number(10, 0) not null, "entries" clob not null, primary key ("id"));`,
    );

    this.addSql(`drop table "audit_calls";`);
  }

  override down(): void | Promise<void> {
    this.addSql(
      `create table "audit_calls" ("actor" varchar2(1536) not null, "actor_name" varchar2(1536) null, "at" timestamp(3) with time zone not null, "details" clob not null, "id" varchar2(64) not null, "outcome" varchar2(16) not null, "status" number(10, 0) not null, "template" varchar2(1536) null, "tool" varchar2(1536) null, primary key ("id"));`,
    );

    this.addSql(`drop table if exists "audit_call_blocks" cascade constraint;`);
  }
}
