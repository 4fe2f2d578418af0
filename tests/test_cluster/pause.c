/* The first process of every pod: it keeps the pod's namespaces until it is told to end. */
#include <signal.h>
#include <unistd.h>

static void end(int number) {
    (void)number;
    _exit(0);
}

int main(void) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    for (;;)
        pause();
}
