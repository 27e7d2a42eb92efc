import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { whyNotExecuted } from '../../../server/programs/not-executed.ts'
import { tempFolder } from '../../support/folder.ts'

test('a program that cannot be executed says what is missing: itself, its interpreter, its loader, or a form that this machine knows', () => {
  const folder = tempFolder()
  const file = (content: string) => {
    writeFileSync(path.join(folder, 'server'), content)
    return path.join(folder, 'server')
  }
  const missing = 'No such file or directory'
  assert.equal(whyNotExecuted(path.join(folder, 'gone'), missing), missing)
  assert.equal(whyNotExecuted(file('#! /opt/venv/bin/python3 -u\n'), missing),
    'its interpreter /opt/venv/bin/python3 is not there')
  assert.match(whyNotExecuted(file('\u007fELF'), missing), /^what loads it is not there/)
  assert.match(whyNotExecuted(file('garbage'), 'Exec format error'), /^it is no program of this machine/)
  assert.equal(whyNotExecuted(file('#!/bin/sh\r\n'), missing),
    'its interpreter is not there, as the name has a CR at its end')
  assert.equal(whyNotExecuted(file('#!/bin/sh'), 'Permission denied'), 'Permission denied')
})
