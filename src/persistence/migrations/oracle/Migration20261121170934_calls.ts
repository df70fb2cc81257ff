import { Migration } from '@mikro-orm/migrations';

export class Migration20261121170934_calls extends Migration {
  override name = 'Migration20261121170934_calls';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "audit_calls" ("id" varchar2(64) not null, "at" timestamp(3) with time zone not null, "actor" varchar2(1536) not null, "actor_name" varchar2(1536) null, "template" varchar2(1536) null, "tool" varchar2(1536) null, "outcome" varchar2(16) not null, "status" number(10, 0) not null, "details" clob not null, primary key ("id"));`,
    );
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists "audit_calls" cascade constraint;`);
  }
}
