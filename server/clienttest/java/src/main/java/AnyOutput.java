import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.CommandOutput;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** Takes whatever the server answers; a map becomes a flat list. Lettuce has outputs for values and for aggregates, none for either. */
final class AnyOutput extends CommandOutput<String, String, Object> {
    private record Open(List<Object> elements, int size) {}

    private final Deque<Open> stack = new ArrayDeque<>();

    AnyOutput() {
        super(StringCodec.UTF8, null);
    }

    private void add(Object value) {
        if (stack.isEmpty()) {
            output = value;
        } else {
            stack.peek().elements.add(value);
        }
        while (!stack.isEmpty() && stack.peek().elements.size() == stack.peek().size) {
            stack.pop();
        }
    }

    @Override
    public void set(ByteBuffer bytes) {
        add(bytes == null ? null : decodeString(bytes));
    }

    @Override
    public void set(long integer) {
        add(integer);
    }

    @Override
    public void multi(int size) {
        var elements = new ArrayList<>();
        if (size == 0) {
            add(elements);
            return;
        }
        if (stack.isEmpty()) {
            output = elements;
        } else {
            stack.peek().elements.add(elements);
        }
        stack.push(new Open(elements, size));
    }
}
