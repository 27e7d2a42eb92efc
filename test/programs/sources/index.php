<?php
echo 'hello from php, pid ', getmypid();
