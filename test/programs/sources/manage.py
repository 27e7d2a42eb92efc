import os
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import path

settings.configure(DEBUG=True, ROOT_URLCONF=__name__, ALLOWED_HOSTS=['*'], SECRET_KEY='gallery')
urlpatterns = [path('', lambda request: HttpResponse(f'hello from django, pid {os.getpid()}'))]
execute_from_command_line(sys.argv)
