import { Migration } from '@mikro-orm/migrations';

export class Migration20261121170934_calls extends Migration {
  override name = 'Migration20261121170934_calls';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "audit_calls" ("id" varchar(64) collate "C" not null, "at" timestamptz(3) not null, "actor" varchar(512) not null, "actor_name" varchar(512) null, "template" varchar(512) null, "tool" varchar(512) null, "outcome" varchar(16) collate "C" not null, "status" int not null, "details" text not null, primary key ("id"));`,
    );
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists "audit_calls" cascade;`);
  }
}
