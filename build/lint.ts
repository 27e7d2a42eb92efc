// Compares what our files import with the tables of build/rooms.ts: `npm run lint`.
import { globSync, readFileSync } from 'node:fs'
import { complaintsAbout } from './rooms.ts'

const complaints = globSync('{server,db,workers,public}/**/*.{ts,js,cjs}').flatMap((file) =>
  complaintsAbout(file, readFileSync(file, 'utf8'))
)
for (const complaint of complaints) console.error(complaint)
if (complaints.length) process.exitCode = 1
