import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { programName } from '../../../server/launch/program-name.ts'
import { tempFolder } from '../../support/folder.ts'
import { rows } from '../../support/rows.ts'

const cwd = tempFolder()
for (const name of ['app.py', 'manage.py', 'main.ts', 'app.jar', 'index.php']) writeFileSync(path.join(cwd, name), '')

test('a program is called by what it is and runs, and what a shell runs by its programs, without their arguments', () => {
  for (const [command, expected] of rows(`
    /usr/bin/python3 app.py                                              → python3 app.py
    /usr/bin/python3 -m uvicorn --port 8000 app:app                      → uvicorn app:app
    /srv/.venv/bin/gunicorn -w 2 shop.wsgi:application                   → gunicorn shop.wsgi:application
    /usr/bin/python3 manage.py runserver 0.0.0.0:8000                    → python3 manage.py runserver
    /usr/local/bin/bun run --hot main.ts                                 → bun run main.ts
    /usr/bin/java -Xmx1g -jar app.jar                                    → java app.jar
    /usr/bin/php -S localhost:8000 index.php                             → php index.php
    /srv/bin/server --token hunter2 admin:hunter2                        → server
    /usr/sbin/nginx -g daemon                                            → nginx
    sh: cd server && KEY=hunter2 ./bin/shop --token x | tee log          → shop, tee (by sh)
    sh: cd /srv && exec /srv/shop                                        → shop (by sh)
    sh: "$SERVER"                                                        → a script (by sh)
    sh: test -f shop.db || /srv/shop                                     → shop (by sh)
  `, '→')) {
    const [entry, ...args] = command.startsWith('sh: ') ? ['/bin/sh', '-c', command.slice(4)] : command.split(' ')
    assert.equal(programName({ entry, args, cwd }), expected)
  }
})
